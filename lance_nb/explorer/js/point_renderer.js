// Draws points: with WebGL where there is one, else pixel by pixel on an ordinary canvas. A point
// is two uint16 coordinates, the code of its colour and its state, one byte each.

import { h } from "./dom.js";

/**
 * @typedef {Object} PointData
 * @property {Uint16Array} xy x and y of every point
 * @property {Uint8Array} codes colours, as places in `Look.colours`
 * @property {Uint8Array} states bits: 1, 2 and 4 are changes, 8 is chosen
 * @property {number} count points that have arrived; the arrays may be longer
 */
/**
 * @typedef {Object} View what is in sight
 * @property {number} x the middle, in coordinates of the points
 * @property {number} y
 * @property {number} scale pixels per unit
 */
/**
 * @typedef {Object} Look
 * @property {Uint8Array} colours 256 colours, 4 bytes each: red, green, blue, opacity
 * @property {boolean} byState whether colours are of states instead of codes
 * @property {boolean} dims whether points that are not chosen are faint
 * @property {number} size of a point, in pixels
 */
/**
 * @typedef {Object} Renderer
 * @property {string} kind "WebGL" or "canvas"
 * @property {(data: PointData, from: number) => void} load take points from place `from` on
 * @property {(data: PointData, view: View, look: Look, most: number) => void} draw draw the first
 *   `most` points
 * @property {() => void} close
 */

export const CHOSEN = 8;
const FAINT = 0.12;

const VERTEX = `
attribute vec2 xy; attribute float code; attribute float state;
uniform vec2 middle; uniform vec2 scale; uniform mediump float size; uniform float byState;
uniform float dims; varying float at; varying float strength;
void main() {
  gl_Position = vec4((xy - middle) * scale, 0.0, 1.0);
  gl_PointSize = size;
  float chosen = step(7.5, state);
  at = mix(code, state - 8.0 * chosen, byState);
  strength = mix(1.0, mix(${FAINT}, 1.0, chosen), dims);
}`;
const FRAGMENT = `
precision mediump float; varying float at; varying float strength;
uniform sampler2D colours; uniform mediump float size;
void main() {
  vec2 off = gl_PointCoord - 0.5;
  if (size > 3.0 && dot(off, off) > 0.25) discard;
  vec4 colour = texture2D(colours, vec2((at + 0.5) / 256.0, 0.5));
  float alpha = colour.a * strength;
  gl_FragColor = vec4(colour.rgb * alpha, alpha);
}`;

/**
 * @param {HTMLCanvasElement} canvas @param {boolean} [plain] draw without WebGL
 * @returns {Renderer}
 */
export function pointRenderer(canvas, plain = false) {
  // A canvas that had WebGL once has nothing else later, so another one is tried first.
  const probe = /** @type {WebGLRenderingContext | null} */ (
    plain ? null : h("canvas").getContext("webgl")
  );
  const isFit = Boolean(probe && linked(probe));
  probe?.getExtension("WEBGL_lose_context")?.loseContext();
  const gl = isFit
    ? canvas.getContext("webgl", { antialias: false, preserveDrawingBuffer: true })
    : null;
  return gl ? onGraphicsCard(canvas, gl) : onCanvas(canvas);
}

/** @param {WebGLRenderingContext} gl @param {number} type @param {string} source */
function compiled(gl, type, source) {
  const shader = /** @type {WebGLShader} */ (gl.createShader(type));
  gl.shaderSource(shader, source);
  gl.compileShader(shader);
  return shader;
}

/** The program, or null when the card refuses it. @param {WebGLRenderingContext} gl */
function linked(gl) {
  const program = /** @type {WebGLProgram} */ (gl.createProgram());
  gl.attachShader(program, compiled(gl, gl.VERTEX_SHADER, VERTEX));
  gl.attachShader(program, compiled(gl, gl.FRAGMENT_SHADER, FRAGMENT));
  gl.linkProgram(program);
  return gl.getProgramParameter(program, gl.LINK_STATUS) ? program : null;
}

/**
 * @param {HTMLCanvasElement} canvas @param {WebGLRenderingContext} gl
 * @returns {Renderer}
 */
function onGraphicsCard(canvas, gl) {
  /** @type {WebGLProgram} */
  let program;
  /** @type {Record<string, {buffer: WebGLBuffer, bytes: number}>} */
  let buffers = {};
  /** @type {Uint8Array | null} */
  let colours = null;
  /** @type {PointData | null} */
  let held = null;

  function begin() {
    program = /** @type {WebGLProgram} */ (linked(gl));
    gl.useProgram(program);
    gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
    for (const [name, value] of [
      [gl.TEXTURE_MIN_FILTER, gl.NEAREST],
      [gl.TEXTURE_MAG_FILTER, gl.NEAREST],
      [gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE],
      [gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE],
    ])
      gl.texParameteri(gl.TEXTURE_2D, name, value);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    buffers = {};
    colours = null;
  }

  /** @param {string} name @param {Uint16Array | Uint8Array} values @param {number} from */
  function upload(name, values, from) {
    if (buffers[name]?.bytes !== values.byteLength) {
      if (buffers[name]) gl.deleteBuffer(buffers[name].buffer);
      const buffer = /** @type {WebGLBuffer} */ (gl.createBuffer());
      buffers[name] = { buffer, bytes: values.byteLength };
      gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
      gl.bufferData(gl.ARRAY_BUFFER, values, gl.DYNAMIC_DRAW);
      return;
    }
    gl.bindBuffer(gl.ARRAY_BUFFER, buffers[name].buffer);
    gl.bufferSubData(
      gl.ARRAY_BUFFER,
      from * values.BYTES_PER_ELEMENT,
      /** @type {BufferSource & (Uint16Array | Uint8Array)} */ (values.subarray(from)),
    );
  }

  /** @param {PointData} data @param {number} from */
  function load(data, from) {
    held = data;
    upload("xy", data.xy, from * 2);
    upload("code", data.codes, from);
    upload("state", data.states, from);
  }

  /** @param {string} name @param {number} parts @param {number} type */
  function bind(name, parts, type) {
    const at = gl.getAttribLocation(program, name);
    gl.bindBuffer(gl.ARRAY_BUFFER, buffers[name].buffer);
    gl.enableVertexAttribArray(at);
    gl.vertexAttribPointer(at, parts, type, false, 0, 0);
  }

  /** @param {string} name */
  const uniform = (name) => gl.getUniformLocation(program, name);
  canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
  canvas.addEventListener("webglcontextrestored", () => {
    begin();
    if (held) load(held, 0);
  });
  begin();
  return {
    kind: "WebGL",
    load,
    draw(data, view, look, most) {
      gl.viewport(0, 0, canvas.width, canvas.height);
      gl.clearColor(0, 0, 0, 0);
      gl.clear(gl.COLOR_BUFFER_BIT);
      if (!data.count || !buffers.xy) return;
      if (colours !== look.colours) {
        ({ colours } = look);
        gl.texImage2D(
          gl.TEXTURE_2D, 0, gl.RGBA, 256, 1, 0, gl.RGBA, gl.UNSIGNED_BYTE, colours,
        ); // biome-ignore format: one call
      }
      bind("xy", 2, gl.UNSIGNED_SHORT);
      bind("code", 1, gl.UNSIGNED_BYTE);
      bind("state", 1, gl.UNSIGNED_BYTE);
      gl.uniform2f(uniform("middle"), view.x, view.y);
      gl.uniform2f(
        uniform("scale"), (2 * view.scale) / canvas.width, (2 * view.scale) / canvas.height,
      ); // biome-ignore format: one call
      gl.uniform1f(uniform("size"), look.size);
      gl.uniform1f(uniform("byState"), look.byState ? 1 : 0);
      gl.uniform1f(uniform("dims"), look.dims ? 1 : 0);
      gl.drawArrays(gl.POINTS, 0, Math.min(most, data.count));
    },
    close: () => gl.getExtension("WEBGL_lose_context")?.loseContext(),
  };
}

/** @param {HTMLCanvasElement} canvas @returns {Renderer} */
function onCanvas(canvas) {
  const pen = canvas.getContext("2d");
  return {
    kind: "canvas",
    load() {},
    draw(data, view, look, most) {
      if (!pen) return;
      const { width, height } = canvas;
      const image = pen.createImageData(width, height);
      paint(new Uint32Array(image.data.buffer), width, height, data, view, look, most);
      pen.putImageData(image, 0, 0);
    },
    close() {},
  };
}

/**
 * Paint points as squares into pixels of 4 bytes each.
 * @param {Uint32Array} pixels @param {number} width @param {number} height
 * @param {PointData} data @param {View} view @param {Look} look @param {number} most
 */
export function paint(pixels, width, height, data, view, look, most) {
  const table = new Uint32Array(look.colours.slice().buffer);
  const side = Math.max(1, Math.round(look.size));
  const count = Math.min(most, data.count);
  for (const wanted of look.dims ? [0, CHOSEN] : [-1]) {
    for (let at = 0; at < count; at += 1) {
      const state = data.states[at];
      if (wanted >= 0 && (state & CHOSEN) !== wanted) continue;
      const x = Math.round((data.xy[2 * at] - view.x) * view.scale + width / 2 - side / 2);
      const y = Math.round(height / 2 - (data.xy[2 * at + 1] - view.y) * view.scale - side / 2);
      if (x < 0 || y < 0 || x + side > width || y + side > height) continue;
      let colour = table[look.byState ? state & ~CHOSEN : data.codes[at]];
      if (wanted === 0) colour = (colour & 0xffffff) | (Math.round(FAINT * 255) << 24);
      for (let row = y; row < y + side; row += 1)
        pixels.fill(colour, row * width + x, row * width + x + side);
    }
  }
}
