// Panning and zooming of the pictures in a report: by buttons, keys, dragging, and Ctrl with the
// wheel. Without this script the pictures stand as they are. It runs in a page of its own
// (report_page.py), so it imports nothing.

const MOST = 16;
const STEP = 1.3;
const ARROWS = new Map([
  ["ArrowLeft", [-0.1, 0]],
  ["ArrowRight", [0.1, 0]],
  ["ArrowUp", [0, -0.1]],
  ["ArrowDown", [0, 0.1]],
]);

/** Give every figure of a page its tools. @param {Document} page */
export function panAndZoom(page) {
  for (const figure of page.querySelectorAll("figure")) {
    const svg = figure.querySelector("svg");
    if (svg) attach(page, figure, svg);
  }
}

/** @param {Document} page @param {HTMLElement} figure @param {SVGSVGElement} svg */
function attach(page, figure, svg) {
  const whole = (svg.getAttribute("viewBox") ?? "").split(" ").map(Number);
  let [left, top, width, height] = whole;

  function paint() {
    left = Math.max(0, Math.min(whole[2] - width, left));
    top = Math.max(0, Math.min(whole[3] - height, top));
    svg.setAttribute("viewBox", [left, top, width, height].join(" "));
    figure.toggleAttribute("data-zoomed", width < whole[2]);
  }

  /**
   * @param {number} factor above 1 to come closer
   * @param {[number, number]} [center] the point that stays, as shares of the picture
   */
  function zoom(factor, center = [0.5, 0.5]) {
    const next = Math.max(whole[2] / MOST, Math.min(whole[2], width / factor));
    left += (width - next) * center[0];
    top += (height - (next * whole[3]) / whole[2]) * center[1];
    width = next;
    height = (next * whole[3]) / whole[2];
    paint();
  }

  /** @param {number} x @param {number} y shares of what is in sight */
  function pan(x, y) {
    left += x * width;
    top += y * height;
    paint();
  }

  function reset() {
    [left, top, width, height] = whole;
    paint();
  }

  /** @param {string} name @param {string} words @param {() => void} work */
  function tool(name, words, work) {
    const button = page.createElement("button");
    button.type = "button";
    button.textContent = name;
    button.setAttribute("aria-label", words);
    button.addEventListener("click", work);
    return button;
  }

  const tools = page.createElement("div");
  tools.className = "tools";
  tools.append(
    tool("+", "zoom in", () => zoom(STEP)),
    tool("−", "zoom out", () => zoom(1 / STEP)),
    tool("Reset", "show the whole picture", reset),
  );
  figure.append(tools);
  figure.setAttribute("tabindex", "0");
  figure.addEventListener("keydown", (event) => {
    const way = ARROWS.get(event.key);
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "+" || event.key === "=") zoom(STEP);
    else if (event.key === "-") zoom(1 / STEP);
    else if (event.key === "0" || event.key === "Escape") reset();
    else if (way && width < whole[2]) pan(way[0], way[1]);
    else return;
    event.preventDefault();
  });
  figure.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const box = svg.getBoundingClientRect();
      const center = /** @type {[number, number]} */ ([
        (event.clientX - box.left) / box.width,
        (event.clientY - box.top) / box.height,
      ]);
      zoom(event.deltaY < 0 ? STEP : 1 / STEP, center);
    },
    { passive: false },
  );
  /** @type {{x: number, y: number} | null} */
  let held = null;
  svg.addEventListener("pointerdown", (event) => {
    if (width >= whole[2] || event.button) return; // text can be selected
    held = { x: event.clientX, y: event.clientY };
    svg.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  svg.addEventListener("pointermove", (event) => {
    if (!held) return;
    const box = svg.getBoundingClientRect();
    pan((held.x - event.clientX) / box.width, (held.y - event.clientY) / box.height);
    held = { x: event.clientX, y: event.clientY };
  });
  for (const end of ["pointerup", "pointercancel", "lostpointercapture"])
    svg.addEventListener(end, () => {
      held = null;
    });
}
