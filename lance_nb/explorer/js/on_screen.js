// Tells the kernel what is on the screen, so that the picture in a saved notebook shows the same.
//
// Views describe themselves. When nothing was done and nothing came for a moment, the descriptions
// are compared with those before, and sent if they differ: one small message after something was
// done, none while nothing changes. What was there at first the kernel knows.

export const STILL_MS = 700;

/**
 * @param {Lnb.Kernel} kernel
 * @param {HTMLElement} root
 * @param {() => Lnb.Json} version the version shown
 * @returns {{describe: Lnb.Context["describe"], close: () => void}}
 */
export function onScreen(kernel, root, version) {
  /** @type {Map<string, () => Lnb.Json>} */
  const states = new Map([["version", version]]);
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  let sent = "";
  let first = true;
  let acted = false; // on a slow machine also before the first description

  function later() {
    clearTimeout(timer);
    timer = setTimeout(tell, STILL_MS);
  }

  function tell() {
    if (kernel.state !== "live") return;
    const shown = Object.fromEntries([...states].map(([name, state]) => [name, state()]));
    const text = JSON.stringify(shown);
    if (text === sent) return;
    sent = text;
    if (!first || acted) kernel.ask("shown", shown, { quiet: true }).catch(() => {});
    first = false;
  }

  const heard = ["click", "keyup", "change", "scroll"];
  const act = () => {
    acted = true;
    later();
  };
  for (const name of heard) root.addEventListener(name, act, { capture: true, passive: true });
  const forget = [kernel.onCost(later), kernel.onState(later)];
  return {
    describe(name, state) {
      states.set(name, state);
    },
    close() {
      clearTimeout(timer);
      for (const work of forget) work();
    },
  };
}
