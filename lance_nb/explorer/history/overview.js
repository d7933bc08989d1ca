// The header: name, where the view stands, the figures, a box to go elsewhere, the lock, the meter.

import { button, bytes, count, h, plural, setText, show } from "../js/dom.js";
import { errorCard } from "../js/error_card.js";
import { lockButton } from "../js/lock_button.js";
import { widget } from "../js/view.js";
import { refPicker } from "../refs/ref_picker.js";

const STATIC = "Static snapshot – run the cell to continue";
const RESTARTED = "The kernel was restarted – run the cell to continue";

/** @param {HTMLElement} el @param {Lnb.Context} ctx */
export function mountOverview(el, ctx) {
  const name = h("h2.lnb-name");
  const currentRef = h("span.lnb-here-ref", { title: "the version shown" });
  const marks = h("span.lnb-marks");
  const badge = h("span.lnb-badge", { hidden: true });
  const facts = h("dl.lnb-facts");
  const problem = h("div", { hidden: true });
  const whole = h(
    "div.lnb-overview-whole",
    h("div.lnb-title", name, currentRef, marks, badge),
    facts,
    h("span.lnb-title-end", ioMeter(ctx), ctx.writes ? lockButton(ctx) : null, refPicker(ctx)),
  );
  el.append(h("header.lnb-overview", problem, whole));

  ctx.onScreen((screen) => {
    const card = screen.card;
    if (!card) return;
    problem.hidden = !card.error;
    whole.hidden = Boolean(card.error);
    if (card.error) return show(problem, errorCard(card.error));
    setText(name, card.name);
    name.title = card.uri;
    setText(currentRef, card.label);
    show(
      marks,
      card.tags.map((tag) =>
        h("span.lnb-tag", { title: `tag ${tag}` }, h("i", { "aria-hidden": "true" }, "⚑"), tag),
      ),
      newest(screen, ctx),
    );
    show(
      facts,
      card.facts.map((fact) =>
        h("div", { title: fact.title }, h("dt", words(fact), " "), h("dd", fact.value)),
      ),
    );
    return undefined;
  });
  ctx.onClose(
    ctx.kernel.onState((state) => {
      badge.textContent = state !== "static" ? "" : ctx.kernel.isLost ? RESTARTED : STATIC;
      badge.hidden = !badge.textContent;
    }),
  );
}

/** @param {Lnb.Fact} fact */
function words(fact) {
  return fact.key === "format"
    ? "file format"
    : fact.value === "1"
      ? fact.key.replace(/s$/, "")
      : fact.key;
}

/**
 * Where newer versions are; those that came while the explorer stood here have a mark.
 * @param {Lnb.Screen} screen @param {Lnb.Context} ctx
 */
function newest(screen, ctx) {
  const { card, news } = screen;
  if (!card) return [];
  if (news?.lost) return lost(news, ctx);
  const latest = Math.max(card.latest, news?.latest ?? 0);
  const go = { click: () => ctx.travel({ branch: screen.branch, version: latest }) };
  const parts = [];
  if (news?.gone)
    parts.push(
      h(
        "span.lnb-badge.lnb-badge-warn",
        {
          title: "Its rows can be read only while its files still exist",
        },
        "this version was cleaned up",
      ),
    );
  if (news?.added)
    parts.push(
      h(
        "button.lnb-button.lnb-news",
        {
          type: "button",
          title: `go to the newest version of this branch, ${latest}`,
          on: go,
        },
        `${plural(news.added, "new version")} → ${latest}`,
      ),
    );
  else if (screen.version < latest)
    parts.push(
      h(
        "button.lnb-button",
        {
          type: "button",
          title: `go to the newest version of this branch, ${latest}`,
          on: go,
        },
        `Newest is ${latest} →`,
      ),
    );
  return parts;
}

/**
 * What is shown went away beneath us; what the kernel still holds can be looked at.
 * @param {Lnb.News} news @param {Lnb.Context} ctx
 */
function lost({ lost: words, way }, ctx) {
  const badge = h(
    "span.lnb-badge.lnb-badge-warn",
    { title: "What is shown was read before that" },
    words,
  );
  return [
    badge,
    way
      ? button(
          `Go to ${way.label}`,
          () => ctx.travel({ branch: way.branch, version: way.version }),
          { class: "lnb-button lnb-news" },
        )
      : null,
  ];
}

const PAUSE_MS = 120; // what was asked for is shown first

/** @param {Lnb.Context} ctx @returns {HTMLElement} */
export function ioMeter(ctx) {
  const element = h("span.lnb-io");
  const first = ctx.screen().io ?? { requests: 0, bytes: 0, ms: 0 };
  const total = { ...first };
  let last = first;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;

  function paint() {
    timer = undefined;
    setText(
      element,
      `${plural(last.requests, "request")} · ${bytes(last.bytes)} · ${count(last.ms)} ms`,
    );
    const seconds = (total.ms / 1000).toFixed(1);
    element.title =
      `The last action; since the explorer was opened ${plural(total.requests, "request")} ` +
      `to the store, ${bytes(total.bytes)}, ${seconds} s`;
  }
  ctx.onClose(() => clearTimeout(timer));
  ctx.onClose(
    ctx.kernel.onCost((cost, quiet) => {
      total.requests += cost.requests;
      total.bytes += cost.bytes;
      total.ms += cost.ms;
      if (quiet) return;
      last = cost;
      timer ||= setTimeout(paint, PAUSE_MS);
    }),
  );
  paint();
  return element;
}

export default widget(mountOverview, "dataset");
