// Where the bytes of the folder are: by state, by ref, by version. Asked for by a person: it reads
// every manifest.

import { percent } from "../js/canvas.js";
import { bytes, count, h, button as makeButton, plural, show, table } from "../js/dom.js";

/** @type {Record<string, string>} */
const STATE_COLOURS = {
  current: "replace",
  old: "change",
  orphan: "remove",
  bookkeeping: "upkeep",
  other: "schema",
};

/** @param {Lnb.Context} ctx @param {() => Lnb.Place} placeNow */
export function spaceUse(ctx, placeNow) {
  const body = h("div.lnb-su-body");
  const button = makeButton("Account for every byte", run, {
    title: "Reads the manifests of all versions, and one listing",
  });
  const words = h(
    "span.lnb-faint",
    "Shows which versions, tags and branches refer to which files, and which files are " +
      "unreferenced. Nothing is changed.",
  );
  const element = h(
    "section.lnb-st-section",
    h("h3.lnb-st-title", "Space", h("small", "of all versions, tags and branches")),
    h("div.lnb-su-tools", button, words),
    body,
  );
  /** @type {Lnb.Asked | null} */
  let running = null;

  async function run() {
    const bar = h("progress.lnb-su-progress", {
      max: "1",
      value: "0",
      "aria-label": "manifests read",
    });
    const far = h("span", "Listing the folder…");
    const stop = makeButton("Cancel", () => running?.cancel());
    show(body, h("p.lnb-su-running", bar, far, stop));
    button.disabled = true;
    const started = (running = ctx.kernel.ask("storage.space", placeNow(), {
      progress: (done, total) => {
        bar.max = Math.max(1, total);
        bar.value = done;
        far.textContent = `${count(done)} of ${count(total)} manifests`;
      },
    }));
    try {
      const { result } = await started;
      if (running === started) show(body, ...account(ctx, result));
    } catch (error) {
      if (running === started) show(body, ctx.problem(error));
    }
    button.disabled = false;
  }

  return element;
}

/** @param {Lnb.Context} ctx @param {Lnb.Json} model see storage/storage_report.py */
function account(ctx, model) {
  const bar = h(
    "div.lnb-su-bar",
    {
      role: "img",
      "aria-label": model.states
        .map(
          (/** @type {Lnb.Json} */ state) => `${state.name} ${percent(state.bytes, model.total)}`,
        )
        .join(", "),
    },
    model.states
      .filter((/** @type {Lnb.Json} */ state) => state.bytes)
      .map((/** @type {Lnb.Json} */ state) => {
        const part = h("span", {
          class: `lnb-su-part lnb-su-${STATE_COLOURS[state.name]}`,
          title: `${state.name}: ${bytes(state.bytes)}`,
        });
        part.style.flexGrow = String(state.bytes);
        return part;
      }),
  );
  const legend = h(
    "ul.lnb-su-legend",
    model.states
      .filter((/** @type {Lnb.Json} */ state) => state.bytes || state.name === "orphan")
      .map((/** @type {Lnb.Json} */ state) =>
        h(
          "li",
          { title: state.title },
          h("i", { class: `lnb-su-${STATE_COLOURS[state.name]}`, "aria-hidden": "true" }),
          h("b", bytes(state.bytes)),
          ` ${state.name}`,
          h("small", percent(state.bytes, model.total)),
        ),
      ),
  );
  /** @param {{place: string, branch: string | null, version: number}} line */
  const go = (line) =>
    makeButton(line.place, () => ctx.travel({ branch: line.branch, version: line.version }), {
      class: "lnb-link",
    });
  return [
    h("p.lnb-su-total", h("b", bytes(model.total)), ` in ${plural(model.files, "file")}`),
    bar,
    legend,
    numberTable(
      "By kind of file",
      ["kind", "files", "bytes", "orphans"],
      model.kinds.map((/** @type {Lnb.Json} */ kind) => [
        kind.name,
        count(kind.files),
        bytes(kind.bytes),
        kind.orphans ? bytes(kind.orphans) : "–",
      ]),
      0,
    ),
    model.refs.length
      ? numberTable(
          "Referred to by tags and branches",
          ["ref", "at", "refers to", "holds alone"],
          model.refs.map((/** @type {Lnb.Json} */ ref) => [
            `${ref.kind === "tag" ? "⚑" : "↳"} ${ref.name}`,
            go(ref),
            bytes(ref.held),
            bytes(ref.own),
          ]),
          model.hidden_refs,
        )
      : null,
    numberTable(
      "Versions with the most bytes of their own",
      ["version", "refers to", "holds alone"],
      model.versions.map((/** @type {Lnb.Json} */ version) => [
        go(version),
        bytes(version.held),
        bytes(version.own),
      ]),
      model.hidden_versions,
    ),
    model.damaged.length
      ? h(
          "div.lnb-error",
          h(
            "div.lnb-error-text",
            h("strong", "Manifests that cannot be read"),
            model.damaged.map((/** @type {Lnb.Json} */ damage) => h("p", damage)),
          ),
        )
      : null,
  ];
}

/**
 * @param {string} title @param {string[]} names @param {Lnb.Child[][]} lines
 * @param {number} hidden
 */
function numberTable(title, names, lines, hidden) {
  const head = names.map((name, index) =>
    h("th", { scope: "col", class: index ? "lnb-right" : "" }, name),
  );
  const rows = lines.map((cells) =>
    cells.map((cell, index) => h("td", { class: index ? "lnb-right" : "" }, cell)),
  );
  return h(
    "div.lnb-su-table",
    h("h4.lnb-fd-title", title),
    table(head, rows),
    hidden ? h("p.lnb-faint", `and ${count(hidden)} more`) : null,
  );
}
