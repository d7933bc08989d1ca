// The points of a map in the page: they arrive in pieces, each a sample of all of them, and are
// kept in the order of their arrival, so that the first ones are a sample as well.

import { bytesOf } from "../js/message_buffers.js";

/** @typedef {ReturnType<typeof pointCloud>} PointCloud */

/** @param {number} total @param {number} pieces */
export function pointCloud(total, pieces) {
  const data = {
    xy: new Uint16Array(2 * total),
    codes: new Uint8Array(total),
    states: new Uint8Array(total),
    /** @type {Uint8Array | null} */
    sizes: null,
    count: 0,
  };
  const starts = [0];
  for (let piece = 0; piece < pieces; piece += 1)
    starts.push(starts[piece] + Math.ceil((total - piece) / pieces));

  /** @param {number} place @returns {number} the number that the kernel has for a point */
  function indexOf(place) {
    let piece = 0;
    while (starts[piece + 1] <= place) piece += 1;
    return piece + (place - starts[piece]) * pieces;
  }

  /**
   * Call for every point with its place here and its number in the kernel.
   * @param {(place: number, index: number) => void} call
   */
  function each(call) {
    for (let piece = 0; piece < pieces; piece += 1) {
      let index = piece;
      for (let place = starts[piece]; place < starts[piece + 1]; place += 1, index += pieces)
        call(place, index);
    }
  }

  return {
    data,
    total,
    indexOf,
    /**
     * Take the next piece; returns the place of its first point.
     * @param {number} piece @param {Lnb.Buffer} xy @param {Lnb.Buffer} codes
     * @param {Lnb.Buffer} [sizes]
     */
    add(piece, xy, codes, sizes) {
      const from = starts[piece];
      data.xy.set(numbers(xy), 2 * from);
      data.codes.set(bytesOf(codes), from);
      if (sizes) {
        data.sizes ??= new Uint8Array(total);
        data.sizes.set(bytesOf(sizes), from);
      }
      data.count = starts[piece + 1];
      return from;
    },
    /** Other colours, in the kernel's order. @param {Lnb.Buffer} buffer */
    recolour(buffer) {
      const codes = bytesOf(buffer);
      each((place, index) => {
        data.codes[place] = codes[index];
      });
    },
    /** Other sizes, in the kernel's order. @param {Lnb.Buffer | undefined} buffer none: one size */
    resize(buffer) {
      const codes = buffer && bytesOf(buffer);
      const sizes = codes ? (data.sizes ??= new Uint8Array(total)) : null;
      data.sizes = sizes;
      if (codes && sizes)
        each((place, index) => {
          sizes[place] = codes[index];
        });
    },
    /**
     * Set bits of all states from bytes in the kernel's order.
     * @param {Lnb.Buffer | null} buffer null: none is set @param {number} mask the bits
     */
    mark(buffer, mask) {
      const states = buffer && bytesOf(buffer);
      each((place, index) => {
        data.states[place] = (data.states[place] & ~mask) | (states ? states[index] & mask : 0);
      });
    },
    /**
     * Set one bit of all states from bits in the kernel's order.
     * @param {Lnb.Buffer | null} buffer null: none is set @param {number} bit
     */
    choose(buffer, bit) {
      const bits = buffer && bytesOf(buffer);
      each((place, index) => {
        const on = bits && bits[index >> 3] & (1 << (index & 7));
        data.states[place] = on ? data.states[place] | bit : data.states[place] & ~bit;
      });
    },
    /** The box around the points with a bit, null without one. @param {number} bit */
    boxOf(bit) {
      const low = [Infinity, Infinity];
      const high = [-Infinity, -Infinity];
      for (let index = 0; index < data.count; index += 1) {
        if (!(data.states[index] & bit)) continue;
        for (const axis of [0, 1]) {
          const value = data.xy[2 * index + axis];
          if (value < low[axis]) low[axis] = value;
          if (value > high[axis]) high[axis] = value;
        }
      }
      return low[0] <= high[0] ? { low, high } : null;
    },
    /**
     * The point nearest to a place, within a reach; -1 without one.
     * @param {number} x @param {number} y @param {number} reach in coordinates
     */
    nearest(x, y, reach) {
      let best = -1;
      let least = reach * reach;
      for (let index = 0; index < data.count; index += 1) {
        const dx = data.xy[2 * index] - x;
        if (dx > reach || dx < -reach) continue;
        const dy = data.xy[2 * index + 1] - y;
        const distance = dx * dx + dy * dy;
        if (distance <= least) {
          least = distance;
          best = index;
        }
      }
      return best;
    },
  };
}

/** Little-endian uint16, wherever they begin. @param {Lnb.Buffer} buffer */
export function numbers(buffer) {
  const bytes = bytesOf(buffer);
  return new Uint16Array(bytes.slice().buffer);
}

/**
 * Fewer corners of an outline: those that are far enough from the one before.
 * @param {number[][]} corners @param {number} most
 */
export function simplified(corners, most) {
  const step = Math.max(1, Math.ceil(corners.length / most));
  return corners.filter((_corner, index) => index % step === 0);
}
