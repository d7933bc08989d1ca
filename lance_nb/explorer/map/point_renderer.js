// Draws points: with WebGL on a graphics card, else pixel by pixel on an ordinary canvas. A point
// is two uint16 coordinates, the code of its colour and its state, one byte each. WebGL that is
// computed by the processor is not used: a million points take it 1.2 s, the ordinary canvas a
// seventh of that.

import { h } from "../js/dom.js";

/**
 * @typedef {Object} PointData
 * @property {Uint16Array} xy x and y of every point
 * @property {Uint8Array} codes colours, as places in `Look.colours`
 * @property {Uint8Array} states bits: 1, 2 and 4 are changes, 8 is chosen
 * @property {Uint8Array | null} sizes codes of sizes, see `sizeFactor`; null: all have the same
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
 * @property {number} size of a point without a size of its own, in pixels
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
const SOFTWARE = /swiftshader|llvmpipe|softpipe|software|basic render/i;

// Areas of the points with the least and the greatest number, times that of a point without one.
// map/point_styles.py has the same.
const AREAS = [0.25, 6.25];

/** By what the width of a point is multiplied. @param {number} code of its size, 0 to 255 */
export const sizeFactor = (code) => Math.sqrt(AREAS[0] + ((AREAS[1] - AREAS[0]) * code) / 255);

const VERTEX = `
attribute vec2 xy; attribute float code; attribute float state; attribute float area;
uniform vec2 middle; uniform vec2 scale; uniform float size; uniform float byState;
uniform float dims; varying float at; varying float strength; varying float wide;
void main() {
  gl_Position = vec4((xy - middle) * scale, 0.0, 1.0);
  wide = size * sqrt(mix(${AREAS[0].toFixed(2)}, ${AREAS[1].toFixed(2)}, area));
  gl_PointSize = wide;
  float chosen = step(7.5, state);
  at = mix(code, state - 8.0 * chosen, byState);
  strength = mix(1.0, mix(${FAINT}, 1.0, chosen), dims);
}`;
const FRAGMENT = `
precision mediump float; varying float at; varying float strength; varying float wide;
uniform sampler2D colours;
void main() {
  vec2 off = gl_PointCoord - 0.5;
  if (wide > 3.01 && dot(off, off) > 0.25) discard;
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
  const options = { antialias: false, preserveDrawingBuffer: true };
  const probe = /** @type {WebGLRenderingContext | null} */ (
    plain ? null : h("canvas").getContext("webgl", options)
  );
  const isFit = Boolean(probe && !isSoftware(probe) && linked(probe));
  probe?.getExtension("WEBGL_lose_context")?.loseContext();
  const gl = /** @type {WebGLRenderingContext | null} */ (
    isFit ? canvas.getContext("webgl", options) : null
  );
  return gl ? onGraphicsCard(canvas, gl) : onCanvas(canvas);
}

/** Whether WebGL is computed by the processor. @param {WebGLRenderingContext} gl */
function isSoftware(gl) {
  const info = gl.getExtension("WEBGL_debug_renderer_info");
  const name = gl.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : gl.RENDERER);
  return SOFTWARE.test(String(name));
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
    if (data.sizes) upload("area", data.sizes, from);
  }

  /**
   * @param {string} name @param {number} parts @param {number} type
   * @param {boolean} [isShare] whether 0 to 255 become 0 to 1
   */
  function bind(name, parts, type, isShare = false) {
    const location = gl.getAttribLocation(program, name);
    gl.bindBuffer(gl.ARRAY_BUFFER, buffers[name].buffer);
    gl.enableVertexAttribArray(location);
    gl.vertexAttribPointer(location, parts, type, isShare, 0, 0);
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
      if (data.sizes && buffers.area) bind("area", 1, gl.UNSIGNED_BYTE, true);
      else {
        const location = gl.getAttribLocation(program, "area");
        gl.disableVertexAttribArray(location);
        gl.vertexAttrib1f(location, (1 - AREAS[0]) / (AREAS[1] - AREAS[0]));
      }
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
  /** @type {ImageData | null} */
  let image = null;
  return {
    kind: "canvas",
    load() {},
    draw(data, view, look, most) {
      if (!pen) return;
      const { width, height } = canvas;
      if (image?.width !== width || image.height !== height)
        image = pen.createImageData(width, height);
      const pixels = new Uint32Array(image.data.buffer);
      pixels.fill(0);
      paint(pixels, width, height, data, view, look, most);
      pen.putImageData(image, 0, 0);
    },
    close() {},
  };
}

/**
 * Paint points as squares, larger ones as circles, into pixels of 4 bytes each.
 * @param {Uint32Array} pixels @param {number} width @param {number} height
 * @param {PointData} data @param {View} view @param {Look} look @param {number} most
 */
export function paint(pixels, width, height, data, view, look, most) {
  const table = new Uint32Array(look.colours.slice().buffer);
  const faint = table.map((colour) => (colour & 0xffffff) | (Math.round(FAINT * 255) << 24));
  const { xy, codes, states, sizes } = data;
  const same = Math.max(1, Math.round(look.size));
  const sides = Uint8Array.from({ length: 256 }, (_none, code) =>
    Math.max(1, Math.min(255, Math.round(look.size * sizeFactor(code)))),
  );
  const widest = sizes ? sides[255] : same;
  const insets = Array.from({ length: widest + 1 }, (_none, side) => insetsOf(side));
  const { scale } = view;
  const left = width / 2 - view.x * scale + 0.5;
  const top = height / 2 + view.y * scale + 0.5;
  const count = Math.min(most, data.count);
  for (const drawn of look.dims ? [0, CHOSEN] : [-1]) {
    const colours = drawn === 0 ? faint : table;
    for (let index = 0; index < count; index += 1) {
      const state = states[index];
      if (drawn >= 0 && (state & CHOSEN) !== drawn) continue;
      const side = sizes ? sides[sizes[index]] : same;
      const x = left + xy[2 * index] * scale - side / 2;
      const y = top - xy[2 * index + 1] * scale - side / 2;
      if (!(x >= 0 && y >= 0 && x <= width - side && y <= height - side)) continue;
      const colour = colours[look.byState ? state & ~CHOSEN : codes[index]];
      const free = insets[side];
      let line = (y | 0) * width + (x | 0);
      for (let row = 0; row < side; row += 1, line += width) {
        const stop = line + side - free[row];
        for (let pixel = line + free[row]; pixel < stop; pixel += 1) pixels[pixel] = colour;
      }
    }
  }
}

/** How many pixels a circle leaves free at each end of its rows. @param {number} side */
function insetsOf(side) {
  return Uint8Array.from({ length: side }, (_none, row) => {
    if (side < 4) return 0;
    const high = row + 0.5 - side / 2;
    return Math.round(side / 2 - Math.sqrt((side * side) / 4 - high * high));
  });
}
