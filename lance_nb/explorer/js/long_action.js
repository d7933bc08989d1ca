// One long action in its place: how far it is, how to end it, and what went wrong.

import { button, count, h, show } from "./dom.js";

/**
 * Ask, showing progress in `place`. Resolves to the result, or to null when it failed: then the
 * error stands there, with a button for `again` if there is one.
 * @param {Lnb.Context} ctx @param {HTMLElement} place
 * @param {{type: string, args: Lnb.Args, words: string, again?: (() => void) | null,
 *   noun?: string}} of
 */
export async function longAction(
  ctx,
  place,
  { type, args, words, again = null, noun = "version" },
) {
  const bar = h("progress.lnb-la-bar", { "aria-label": words });
  const label = h("span", words);
  const running = ctx.kernel.ask(type, args, {
    progress: (done, total) => {
      bar.max = Math.max(1, total);
      bar.value = done;
      label.textContent = `${words} ${count(done)} of ${count(total)} ${noun}s`;
    },
  });
  show(
    place,
    h(
      "p.lnb-la",
      bar,
      label,
      button("Cancel", () => running.cancel()),
    ),
  );
  try {
    const { result } = await running;
    show(place);
    return result;
  } catch (error) {
    show(place, ctx.problem(error), again && button("Refresh", again));
    return null;
  }
}
