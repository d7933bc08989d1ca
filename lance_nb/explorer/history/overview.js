// The header, one line: name, the version shown with a menu of others, the figures, the lock.

import { button, h, plural, setText, show } from "../js/dom.js";
import { errorCard } from "../js/error_card.js";
import { lockButton } from "../js/lock_button.js";
import { popover } from "../js/popover.js";
import { widget } from "../js/view.js";
import { refPicker } from "../refs/ref_picker.js";

const STATIC = "Static snapshot – run the cell to continue";
const RESTARTED = "The kernel was restarted – run the cell to continue";

// The figures that the first screen has; the others are in the tooltip of the size.
const SHOWN_FACTS = ["rows", "columns", "size"];

/** @param {HTMLElement} el @param {Lnb.Context} ctx */
export function mountOverview(el, ctx) {
  const name = h("h2.lnb-name");
  const menu = versionMenu(ctx);
  const marks = h("span.lnb-marks");
  const badge = h("span.lnb-badge", { hidden: true });
  const facts = h("dl.lnb-facts");
  const problem = h("div", { hidden: true });
  const whole = h(
    "div.lnb-overview-whole",
    name,
    menu.element,
    facts,
    h("span.lnb-title-end", marks, badge, ctx.writes ? lockButton(ctx) : null),
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
    menu.paint(screen, card);
    show(marks, news(screen, ctx));
    show(facts, card.facts.filter(({ key }) => SHOWN_FACTS.includes(key)).map(figure, card));
    return undefined;
  });
  ctx.onClose(
    ctx.kernel.onState((state) => {
      badge.textContent = state !== "static" ? "" : ctx.kernel.isLost ? RESTARTED : STATIC;
      badge.hidden = !badge.textContent;
    }),
  );
}

/** @this {Lnb.DatasetCard} @param {Lnb.Fact} fact */
function figure(fact) {
  const more = this.facts.filter(({ key }) => !SHOWN_FACTS.includes(key));
  const lines = fact.key === "size" ? more.map((line) => `${words(line)}: ${line.value}`) : [];
  return h(
    "div",
    { title: [fact.title, ...lines].join("\n") },
    h("dt", words(fact), " "),
    h("dd", fact.value),
  );
}

/**
 * The version shown, which opens a box to go to another one. Its width is that of the longest
 * label, so that nothing behind it moves.
 * @param {Lnb.Context} ctx
 */
function versionMenu(ctx) {
  const opener = h("button.lnb-button.lnb-here-ref", { type: "button" });
  const about = h("div.lnb-version-about");
  const picker = refPicker(ctx);
  const panel = h("div.lnb-menu", about, picker);
  const { element, close } = popover(opener, panel, () => picker.querySelector("input")?.focus());
  return {
    element,
    /** @param {Lnb.Screen} screen @param {Lnb.DatasetCard} card */
    paint(screen, card) {
      close();
      const tags = card.tags.join(", ");
      setText(opener, card.label);
      opener.title = `${tags ? `tagged ${tags}: ` : ""}go to another version, tag or branch`;
      opener.classList.toggle("lnb-tagged", Boolean(tags));
      const lengths = (screen.timeline?.lanes ?? []).map(({ label, runs }) => {
        const [first, length] = runs.at(-1) ?? [1, 1];
        return `${label}:${first + length - 1}`.length;
      });
      opener.style.minWidth = `calc(${Math.max(card.label.length, ...lengths)}ch + 42px)`;
      const latest = Math.max(card.latest, screen.news?.latest ?? 0);
      show(
        about,
        card.tags.map((tag) => h("span.lnb-tag", { title: `tag ${tag}` }, "⚑ ", tag)),
        screen.version < latest && toNewest(`Newest is ${latest} →`, latest, screen.branch, ctx),
      );
    },
  };
}

/**
 * @param {string} label @param {number} version @param {string | null} branch
 * @param {Lnb.Context} ctx @param {string} [look]
 */
function toNewest(label, version, branch, ctx, look = "lnb-button") {
  return button(label, () => ctx.travel({ branch, version }), {
    class: look,
    title: `go to the newest version of this branch, ${version}`,
  });
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
 * What happened while the explorer stood at this version.
 * @param {Lnb.Screen} screen @param {Lnb.Context} ctx
 */
function news({ card, news: heard, branch }, ctx) {
  if (!card || !heard) return [];
  if (heard.lost) return lost(heard, ctx);
  const latest = Math.max(card.latest, heard.latest);
  const title = "Its rows can be read only while its files still exist";
  const label = `${plural(heard.added, "new version")} → ${latest}`;
  return [
    heard.gone && h("span.lnb-badge.lnb-badge-warn", { title }, "this version was cleaned up"),
    heard.added && toNewest(label, latest, branch, ctx, "lnb-button lnb-news"),
  ];
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

export default widget(mountOverview, "dataset");
