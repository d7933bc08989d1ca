// The header: name, where the view stands, the figures, and a box to go elsewhere.

import { h } from "../js/dom.js";
import { errorCard } from "../js/error_card.js";
import { widget } from "../js/view.js";

const STATES = {
  static: "static snapshot – run the cell to go on",
};
let instances = 0;

/** @param {HTMLElement} el @param {import("../js/view.js").Context} ctx */
export function mountOverview(el, ctx) {
  const header = h("header", { class: "lnb-overview" });
  const badge = h("span", { class: "lnb-badge", hidden: true });
  el.append(header);
  ctx.onScreen((screen) => {
    const card = screen.card;
    if (!card) return;
    if (card.error) {
      header.replaceChildren(errorCard(card.error));
      return;
    }
    header.replaceChildren(
      h("div", { class: "lnb-title" },
        h("h2", { class: "lnb-name", title: card.uri }, card.name),
        h("span", { class: "lnb-here-ref", title: "the version shown" }, card.label),
        card.tags.map((tag) => h("span", { class: "lnb-tag", title: `tag ${tag}` }, h("i", { "aria-hidden": "true" }, "⚑"), tag)),
        card.version < card.latest ? newestButton(card, ctx) : null,
        badge,
        goTo(screen, ctx),
      ),
      h("dl", { class: "lnb-facts" }, card.facts.map((fact) => h("div", { title: fact.title }, h("dt", {}, words(fact), " "), h("dd", {}, fact.value)))),
    );
  });
  ctx.onClose(ctx.kernel.onState((state) => {
    badge.textContent = STATES[state] ?? "";
    badge.hidden = !badge.textContent;
  }));
}

function words(fact) {
  return fact.key === "format" ? "file format" : fact.value === "1" ? fact.key.replace(/s$/, "") : fact.key;
}

function newestButton(card, ctx) {
  return h("button", { class: "lnb-button", type: "button", title: `go to the newest version of this branch, ${card.latest}`,
    on: { click: () => ctx.travel({ branch: ctx.screen().branch, version: card.latest }) } }, `newest is ${card.latest} →`);
}

function goTo(screen, ctx) {
  const list = `lnb-refs${(instances += 1)}`;
  const { tags = [], lanes = [] } = screen.timeline ?? {};
  const input = h("input", { class: "lnb-input", list, placeholder: "go to…", "aria-label": "go to a version, tag or branch", spellcheck: "false", autocomplete: "off", size: "12" });
  const options = [
    ...lanes.map((lane) => h("option", { value: lane.branch ?? "main" }, "branch")),
    ...tags.map((tag) => h("option", { value: `tag:${tag.name}` }, "tag")),
    h("option", { value: "HEAD~1" }, "one before the newest"),
  ];
  return h("form", { class: "lnb-goto", title: "12 · tag:v1 · dev · dev:3 · HEAD~2",
    on: {
      submit: (event) => {
        event.preventDefault();
        if (input.value.trim()) ctx.travel({ ref: input.value.trim() });
      },
      keydown: (event) => event.stopPropagation(),
    } }, input, h("datalist", { id: list }, options));
}

export default widget(mountOverview, "dataset");
