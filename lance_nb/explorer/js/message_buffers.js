// Binary buffers of messages, in hosts that deliver them and in those that do not.

/**
 * Front ends hand buffers over as DataView or ArrayBuffer, at any alignment.
 * @param {Lnb.Buffer} buffer
 */
export function bytesOf(buffer) {
  if (buffer instanceof ArrayBuffer) return new Uint8Array(buffer);
  return new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength);
}

/** @param {string} text in base64 @returns {DataView} */
export function bytesOfText(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new DataView(bytes.buffer);
}

/**
 * Whether all buffers came.
 * @param {(Lnb.Buffer | null | undefined)[] | undefined} buffers
 * @param {number | undefined} count how many were sent
 */
export function isWhole(buffers, count = 0) {
  const isPresent = (/** @type {unknown} */ buffer) =>
    buffer instanceof DataView || buffer instanceof ArrayBuffer;
  return !count || (buffers?.length === count && buffers.every(isPresent));
}
