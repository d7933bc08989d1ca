// Requests to the kernel: ids, time-outs, latest-wins lines, and knowing when nobody answers.

import { atOnce } from "./dom.js";

const NO_ANSWER_MS = 1500;
let pages = 0;

/**
 * @param {Object} model the widget's model (anywidget's `get/set/on/off/send`)
 * @returns what views use to ask the kernel; `close` ends it
 */
export function openKernel(model) {
  const prefix = `${Math.random().toString(36).slice(2, 8)}-${(pages += 1)}`;
  const waiting = new Map();
  const listeners = new Set();
  const costs = new Set();
  let state = "connecting";
  let sent = 0;

  function setState(next) {
    if (next === state) return;
    state = next;
    for (const listener of listeners) listener(state);
  }

  function onMessage(message, buffers) {
    const entry = message && waiting.get(message.id);
    if (!entry) return;
    if (message.progress) {
      entry.progress?.(...message.progress);
      return;
    }
    if (message.io) for (const told of costs) told(message.io, entry.quiet);
    waiting.delete(message.id);
    setState("live");
    if (message.ok) entry.resolve({ result: message.result, buffers: buffers ?? [] });
    else entry.reject(Object.assign(new Error(message.error.message), { card: message.error }));
  }
  model.on("msg:custom", onMessage);

  /**
   * Ask once. Rejects with an error that carries the kernel's error card. The promise has `cancel()`
   * for long work, which tells how far it is by `progress(done, total)`. What is asked `quiet`ly is
   * no action of a person.
   */
  function ask(type, args = {}, { progress = null, quiet = false } = {}) {
    const id = `${prefix}-${(sent += 1)}`;
    const answer = new Promise((resolve, reject) => {
      waiting.set(id, { resolve, reject, progress, quiet });
      try {
        model.send({ id, type, args });
      } catch (error) {
        waiting.delete(id);
        reject(error);
      }
    });
    answer.cancel = () => ask("cancel", { id }, { quiet: true }).catch(() => {});
    return answer;
  }

  /**
   * A line of requests where only the newest matters: one under way, one waiting. Long work (with
   * `progress`) is cancelled when a newer request comes; `cancel()` of the line ends it all.
   */
  function line(options = {}) {
    let busy = false;
    let next = null;
    let now = null;
    async function run({ type, args, done, failed }) {
      busy = true;
      try {
        now = ask(type, args, options);
        const answer = await now;
        atOnce(() => done(answer));
      } catch (error) {
        if (!next) failed(error);
      }
      busy = false;
      const queued = next;
      next = null;
      if (queued) run(queued);
    }
    function request(type, args, done, failed) {
      const wanted = { type, args, done, failed };
      if (!busy) return run(wanted);
      next = wanted;
      return options.progress && now.cancel();
    }
    request.cancel = () => {
      next = null;
      if (busy) now.cancel();
    };
    return request;
  }

  // The first message is ours: a kernel that lives answers it. Without an answer this is a picture.
  const timer = setTimeout(() => state === "connecting" && setState("static"), NO_ANSWER_MS);
  ask("ready", {}, { quiet: true }).catch(() => setState("static"));

  return {
    ask,
    line,
    get state() {
      return state;
    },
    /** Hear what each answer cost: `told({requests, bytes, ms}, quiet)`. */
    onCost(told) {
      costs.add(told);
      return () => costs.delete(told);
    },
    onState(listener) {
      listeners.add(listener);
      listener(state);
      return () => listeners.delete(listener);
    },
    close() {
      clearTimeout(timer);
      model.off("msg:custom", onMessage);
      waiting.clear();
      listeners.clear();
      costs.clear();
    },
  };
}
