// Commits of other writers appear by themselves: names are asked for now and then, while somebody
// looks.

const EVERY_MS = 4000;
const PATIENCE = 20; // a slow store is asked more seldom: this many times as long as it took

/**
 * @param {HTMLElement} root nothing is asked while it is out of sight
 * @param {Lnb.Context} ctx gets `news` {added, latest, gone, lost, way} as a part of its screen
 */
export function watchNews(root, ctx) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  let asking = false; // also while the kernel is busy: a reply that is lost ends it, see kernel.js
  let inSight = true;
  let mark = "";
  let knownVersion = { latest: 0 };

  async function look() {
    const started = performance.now();
    if (asking || ctx.kernel.state !== "live" || !inSight || document.visibilityState !== "visible")
      return;
    clearTimeout(timer);
    asking = true;
    let isLost = false;
    try {
      const { result } = await ctx.kernel.ask(
        "news",
        { latest: knownVersion.latest, mark },
        { quiet: true },
      );
      take(result);
      mark = result.mark;
    } catch (error) {
      // A store that does not answer now is asked again later; what is shown stays.
      isLost = /** @type {Lnb.Failure} */ (error).card?.kind === "Timeout";
    }
    asking = false;
    wait(isLost ? EVERY_MS : Math.max(EVERY_MS, PATIENCE * (performance.now() - started)));
  }

  /** @param {number} ms */
  function wait(ms) {
    clearTimeout(timer);
    timer = setTimeout(look, ms);
  }

  /** @param {Lnb.Json} result */
  function take(result) {
    const { latest, gone, timeline, card, lost, way } = result;
    // The person may have travelled there meanwhile.
    const added = latest > knownVersion.latest ? result.added : 0;
    const before = ctx.screen().news;
    if (!timeline && before?.latest === latest && before?.gone === gone) return;
    if (!timeline && !added && !gone && !before) return;
    ctx.refresh({
      news: { added, latest, gone, lost, way },
      ...(timeline && { timeline }),
      ...(card && { card }),
    });
    if (lost && !before?.lost) ctx.announce(lost);
    if (added && before?.latest !== latest)
      ctx.announce(`${added} new, the newest version is ${latest}`);
  }

  const observer = new IntersectionObserver(([entry]) => {
    inSight = entry.isIntersecting;
    if (inSight) look();
  });
  observer.observe(root);
  document.addEventListener("visibilitychange", look);
  window.addEventListener("focus", look);
  // The first look is at once: it notes the names that the screen was made of.
  ctx.onClose(ctx.kernel.onState((state) => state === "live" && look()));
  ctx.onClose(() => {
    clearTimeout(timer);
    observer.disconnect();
    document.removeEventListener("visibilitychange", look);
    window.removeEventListener("focus", look);
  });
  // What is newest counts from the last journey on: it is what the person has seen.
  ctx.onScreen((screen, patched) => {
    if (patched) return;
    const lane = screen.timeline?.lanes?.find(
      (lane) => (lane.branch ?? null) === (screen.branch ?? null),
    );
    const [first, length] = lane?.runs.at(-1) ?? [screen.version, 1];
    // The mark stays: versions that came during the journey are news.
    knownVersion = { latest: Math.max(first + length - 1, screen.version) };
  });
}
