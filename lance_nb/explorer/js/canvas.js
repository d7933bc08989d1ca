// What views that draw on a canvas share: sharp pixels, colours of the theme, a hatch.

/**
 * Size a canvas to its element and return its pen, in CSS pixels.
 * @param {HTMLCanvasElement} canvas @param {number} width @param {number} height
 */
export function penOf(canvas, width, height) {
  const scale = Math.min(3, window.devicePixelRatio || 1);
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  return pen;
}

/**
 * The colours that the tokens of dom.css have in the present theme.
 * @returns {Record<string, string>} @param {Element} element @param {string[]} names
 */
export function themeColours(element, names) {
  const probe = document.createElement("span");
  element.append(probe);
  /** @type {Record<string, string>} */
  const context = {};
  for (const name of names) {
    probe.style.color = `var(--lnb-${name})`;
    context[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  return context;
}

/**
 * A hatch of one colour, to fill with.
 * @param {CanvasRenderingContext2D} pen @param {string} colour
 */
export function hatch(pen, colour) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const drawn = /** @type {CanvasRenderingContext2D} */ (tile.getContext("2d"));
  drawn.strokeStyle = colour;
  drawn.lineWidth = 1.4;
  drawn.beginPath();
  for (const from of [-6, 0, 6]) {
    drawn.moveTo(from, 6);
    drawn.lineTo(from + 6, 0);
  }
  drawn.stroke();
  return pen.createPattern(tile, "repeat");
}

/**
 * Paint again when the notebook changes its theme. Returns how to stop.
 * @param {() => void} paint
 */
export function onTheme(paint) {
  const observer = new MutationObserver(paint);
  observer.observe(document.body, {
    attributes: true,
    attributeFilter: ["data-jp-theme-light", "data-jp-theme-name", "class"],
  });
  return () => observer.disconnect();
}

/** A share as words, never "0 %" for something small. @param {number} part @param {number} whole */
export function percent(part, whole) {
  if (part <= 0 || whole <= 0) return "0 %";
  const share = (100 * part) / whole;
  return share < 0.1 ? "< 0.1 %" : `${share.toFixed(1)} %`;
}
