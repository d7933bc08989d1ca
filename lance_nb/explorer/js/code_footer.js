// The line that does the same as the present state, in Python and as a magic.

import { button, copyText, h, setText } from "./dom.js";

/**
 * @param {HTMLElement} el @param {Lnb.Context} ctx
 * @param {() => Lnb.CodeLines|null} lines of the open tab
 */
export function codeFooter(el, ctx, lines) {
  let language = "python";
  const code = h("code.lnb-code-line");
  const choices = ["python", "magic"].map((name) =>
    button(name === "python" ? "Python" : "%lance", () => choose(name), { class: "lnb-choice" }),
  );
  const copy = button(
    "Copy",
    async () => {
      const done = await copyText(code.textContent ?? "");
      copy.textContent = done ? "Copied" : "Press Ctrl+C";
      if (!done) getSelection()?.selectAllChildren(code);
      ctx.announce(copy.textContent ?? "");
      setTimeout(() => {
        copy.textContent = "Copy";
      }, 1200);
    },
    { title: "copy this line" },
  );
  el.append(
    h(
      "footer.lnb-code",
      h("div.lnb-choices", { role: "group", "aria-label": "same as code" }, choices),
      code,
      copy,
    ),
  );

  /** @param {string} name */
  function choose(name) {
    language = name;
    paint();
  }
  function paint() {
    /** @type {Partial<Lnb.CodeLines>} */
    const codes = { ...ctx.screen().code, ...lines() };
    setText(code, codes[language] ?? "");
    code.title = code.textContent ?? "";
    choices.forEach((choice, index) =>
      choice.setAttribute("aria-pressed", String((index === 0) === (language === "python"))),
    );
  }
  ctx.onScreen(paint);
  return paint;
}
