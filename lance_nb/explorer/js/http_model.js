// The model of a widget whose other half is behind a server: messages go as posts, answers and
// changed traits come as the answer to a request that waits for them.

import { revive } from "./snapshot_kernel.js";

const PAUSE_MS = 1000; // after a request that failed

/**
 * @param {{session: string, token: string, state: Lnb.Json}} initialState
 * @param {typeof fetch} [load]
 * @returns {Lnb.Model & {close: () => void}}
 */
export function httpModel({ session, token, state: initialState }, load = fetch.bind(globalThis)) {
  /** @type {Map<string, ((...values: Lnb.Json[]) => void)[]>} */
  const heard = new Map();
  /** @type {Record<string, Lnb.Json>} */
  const state = revive(initialState);
  const headers = { "X-Lance-Token": token, "X-Lance-Session": session };
  let open = true;

  /** @param {string} name @param {...Lnb.Json} values */
  const fire = (name, ...values) =>
    (heard.get(name) ?? []).forEach((listener) => listener(...values));

  /** @param {Lnb.Json} event */
  function take(event) {
    if (event.trait) {
      state[event.trait] = revive(event.value);
      fire(`change:${event.trait}`);
    } else fire("msg:custom", event.content, event.buffers.map(revive));
  }

  async function listen() {
    while (open) {
      try {
        const answer = await load("/events", { headers });
        if (answer.status === 404) return; // the server has another session or was started anew
        for (const event of answer.ok ? await answer.json() : []) take(event);
      } catch {
        // The server was ended: the view says so when a request is not answered.
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      }
    }
  }
  listen();

  return {
    get: (name) => state[name],
    on(name, listener) {
      heard.set(name, [...(heard.get(name) ?? []), listener]);
    },
    off(name, listener) {
      heard.set(
        name,
        (heard.get(name) ?? []).filter((heardListener) => heardListener !== listener),
      );
    },
    send(content) {
      const body = JSON.stringify(content);
      load("/message", { method: "POST", headers, body }).catch(() => {});
    },
    close() {
      open = false;
    },
  };
}
