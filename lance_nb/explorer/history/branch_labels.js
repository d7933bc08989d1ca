// The names of the lanes of the timeline. A name that is dragged onto another lane, or is picked up
// and put down with the keyboard, starts a merge.

import { h } from "../js/dom.js";

const FAR = 4; // pixels that a press may move and still be a click

/**
 * @param {Lnb.Context} ctx
 * @param {{map: () => Lnb.LaneMap, go: (lane: Lnb.Lane) => void,
 *   hint: (words: string) => void}} timeline `hint`: what letting go would do, empty at the end
 */
export function branchLabels(ctx, { map, go, hint }) {
  const element = h("div.lnb-tl-names", { role: "group", "aria-label": "branches" });
  /** @type {HTMLElement[]} */
  let labels = [];
  /** @type {{lane: Lnb.Lane, y: number, by: "key" | "pointer", moved: boolean} | null} */
  let held = null;
  let over = -1;

  const mergeable = () =>
    ctx.kernel.state !== "static" && map().lanes.length > 1 && ctx.has?.("refs");

  /** @param {number} index the lane that is pointed at, -1 for none */
  function aim(index) {
    over = index;
    labels.forEach((label, place) => {
      label.classList.toggle("lnb-held", Boolean(held?.moved) && held?.lane.index === place);
      label.classList.toggle("lnb-aimed", place === index);
    });
    const target = map().lanes[index];
    if (!held?.moved) hint("");
    else if (!target) hint(`Merge ${held.lane.label} into…`);
    else hint(`Merge ${held.lane.label} into ${target.label}`);
  }

  function drop() {
    const [source, target] = [held?.lane, map().lanes[over]];
    cancel();
    if (!source || !target || source === target) return;
    const into = target.branch ?? "main";
    ctx.go("refs", { merge: { source: source.branch ?? "main", into } });
  }

  function cancel() {
    held = null;
    aim(-1);
  }

  /** @param {PointerEvent} event */
  function laneAt(event) {
    const y = event.clientY - element.getBoundingClientRect().top;
    const lane = map().lanes.find(
      (candidate) => y >= candidate.top && y < candidate.top + candidate.height,
    );
    return lane && lane !== held?.lane ? lane.index : -1;
  }

  /** @param {Lnb.Lane} lane @param {HTMLElement} label */
  function listen(lane, label) {
    label.addEventListener("pointerdown", (event) => {
      if (event.button || !mergeable()) return;
      held = { lane, y: event.clientY, by: "pointer", moved: false };
      label.setPointerCapture?.(event.pointerId);
    });
    label.addEventListener("pointermove", (event) => {
      if (held?.by !== "pointer") return;
      held.moved ||= Math.abs(event.clientY - held.y) > FAR;
      if (held.moved) aim(laneAt(event));
    });
    label.addEventListener("pointerup", () => {
      if (held?.by !== "pointer") return;
      if (held.moved) drop();
      else {
        cancel();
        go(lane);
      }
    });
    for (const end of ["pointercancel", "lostpointercapture"])
      label.addEventListener(end, () => held?.by === "pointer" && cancel());
    label.addEventListener("blur", (event) => {
      const next = /** @type {HTMLElement | null} */ (event.relatedTarget);
      if (held?.by === "key" && !(next && labels.includes(next))) cancel();
    });
  }

  /** @param {number} index */
  function focus(index) {
    const current = Math.max(0, Math.min(labels.length - 1, index));
    labels.forEach((label, labelIndex) =>
      label.setAttribute("tabindex", labelIndex === current ? "0" : "-1"),
    );
    labels[current].focus();
    if (held) {
      aim(map().lanes[current] === held.lane ? -1 : current);
      const words =
        over < 0 ? "this is the branch itself" : `Enter merges into ${labelOf(current)}`;
      ctx.announce(words);
    }
  }

  /** @param {number} index */
  const labelOf = (index) => map().lanes[index].label;

  element.addEventListener("keydown", (event) => {
    const index = labels.indexOf(/** @type {HTMLElement} */ (event.target));
    if (index < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
    const lane = map().lanes[index];
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      focus(index + (event.key === "ArrowDown" ? 1 : -1));
    } else if (event.key === "Escape" && held) {
      cancel();
      ctx.announce("not merged");
    } else if (event.key === "Enter" && held) {
      drop();
    } else if (event.key === "Enter") {
      go(lane);
    } else if ((event.key === "m" || event.key === " ") && mergeable()) {
      held = { lane, y: 0, by: "key", moved: true };
      aim(-1);
      ctx.announce(`${lane.label} is picked up: choose a branch with the arrow keys, then Enter`);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });

  return {
    element,
    /** Show the names anew. @param {number} width @param {(lane: Lnb.Lane) => string} titleOf */
    paint(width, titleOf) {
      const { lanes, here } = map();
      const active = labels.indexOf(
        /** @type {HTMLElement} */ (element.ownerDocument.activeElement),
      );
      const drags = mergeable();
      const hint = "; drag it onto another branch to merge, or press M";
      labels = lanes.map((lane) => {
        const label = h(
          "div",
          {
            class: `lnb-tl-name${lane.index === here.lane ? " lnb-here" : ""}`,
            role: "button",
            tabindex: lane.index === here.lane ? "0" : "-1",
            title: `${titleOf(lane)}${drags ? hint : ""}`,
          },
          lane.label,
        );
        label.style.top = `${lane.top + lane.height - 20}px`;
        listen(lane, label);
        return label;
      });
      element.style.width = `${width}px`;
      element.replaceChildren(...labels);
      if (held) cancel(); // also what was said of it
      if (active >= 0) labels[Math.min(active, labels.length - 1)].focus();
    },
  };
}
