// Requests to the kernel: ids, timeouts, one retry, latest-wins queues, and noticing a kernel that
// is gone.
//
// A kernel that runs a user's cell answers nothing until the cell is done, which is no error. So a
// request that gets no answer is first only reported as late, and `ready` is sent as a probe. The
// kernel answers messages in order (long work excepted, see request_kinds.js): when the probe is
// answered, earlier requests without an answer have lost theirs. Reads are then sent once more;
// what is lost again is rejected.
//
// A kernel that was restarted no longer knows the widget. It handles the probe and answers nothing,
// which JupyterLab reports as the status "idle" of that message; and it disconnects the widget's
// model ("comm_live_update").
//
// Some hosts lose the binary buffers of messages. An answer says how many it has; when they are not
// there, the kernel is told to send them as text from now on, and a read is sent once more.

import { atOnce } from "./dom.js";
import { bytesOfText, isWhole } from "./message_buffers.js";
import { isInOrder, isRepeatable } from "./request_kinds.js";

export const TIMES = {
  connectMs: 1500, // no answer to the first message: the view is a saved picture
  lateMs: 8000, // no answer to a request: the user is informed, and the kernel is probed
  longLateMs: 30000, // the same for long work since its last progress
  silentMs: 120000, // long work of a kernel that answers otherwise reports no progress
  absoluteMs: 600000, // nothing is heard of a request at all
  handledMs: 3000, // a reply comes so soon after the kernel reports that it has handled the message
  heartbeatMs: 20000,
};

const RESTARTED = {
  title: "The kernel was restarted",
  message: "It no longer holds this dataset. What is shown was read before.",
  hint: "Run the cell again.",
  kind: "Kernel",
};

let pages = 0;

/**
 * @typedef {Object} Pending a request without an answer
 * @property {string} type
 * @property {Lnb.Args} args
 * @property {string[]} ids of the message and of its repetitions; the first answer counts
 * @property {number} order of the last message sent for it
 * @property {number} heard when it was sent or last reported progress
 * @property {boolean} late @property {boolean} repeated @property {boolean} quiet
 * @property {boolean} asText whether it was sent again because the buffers of its answer were lost
 * @property {((done: number, total: number) => void)|null} progress
 * @property {(answer: Lnb.Answer) => void} resolve @property {(error: Lnb.Failure) => void} reject
 * @property {ReturnType<typeof setTimeout>|undefined} timer
 */

/**
 * @param {Lnb.Model} model the widget's model
 * @param {{isVisible?: (() => boolean)|null}} [options] with `isVisible` a silent kernel is probed
 *   while it is true
 * @returns {Lnb.Kernel} what views use to ask the kernel; `close` ends it
 */
export function openKernel(model, { isVisible = null } = {}) {
  const prefix = `${Math.random().toString(36).slice(2, 8)}-${(pages += 1)}`;
  /** @type {Map<string, Pending>} by id of each message */
  const pending = new Map();
  /** @type {Set<(state: Lnb.State) => void>} */
  const stateListeners = new Set();
  /** @type {Set<(io: Lnb.Cost, quiet: boolean) => void>} */
  const costListeners = new Set();
  /** @type {Set<(count: number) => void>} */
  const lateListeners = new Set();
  /** @type {Lnb.State} */
  let state = "connecting";
  let isLost = false; // there is evidence that the kernel no longer knows this widget
  let sent = 0;
  let heard = Date.now();
  /** @type {Pending | null} */
  let probe = null;
  let probedAt = -Infinity;
  let lateBefore = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let connectTimer;
  let retry = () => {};

  /** @param {Lnb.State} next */
  function setState(next) {
    if (next === state) return;
    state = next;
    for (const listener of [...stateListeners]) listener(state);
  }

  /** @param {Lnb.Json} message @param {Lnb.Buffer[]} [buffers] */
  function onMessage(message, buffers) {
    const entry = message && pending.get(message.id);
    if (!entry) return; // answered already, given up, or somebody else's
    heard = Date.now();
    if (message.progress) {
      entry.heard = heard;
      entry.late = false;
      watch(entry);
      reportLate();
      entry.progress?.(...message.progress);
      return;
    }
    const parts = message.base64?.map(bytesOfText) ?? buffers ?? [];
    if (message.ok && !isWhole(parts, message.num_buffers) && !entry.asText)
      return askAsText(entry);
    forget(entry);
    if (message.io) for (const listener of costListeners) listener(message.io, entry.quiet);
    isLost = false;
    clearTimeout(connectTimer);
    setState("live");
    if (message.ok) entry.resolve({ result: message.result, buffers: parts });
    else entry.reject(errorOf(message.error));
    reportLate();
  }

  /** @param {Lnb.Card} card @returns {Lnb.Failure} */
  function errorOf(card) {
    return Object.assign(new Error(card.message), { card });
  }

  /** @param {Pending} entry */
  function forget(entry) {
    clearTimeout(entry.timer);
    for (const id of entry.ids) pending.delete(id);
  }

  /** @param {Pending} entry @param {Partial<Lnb.Card> & {title: string, message: string}} card */
  function fail(entry, card) {
    forget(entry);
    entry.reject(errorOf({ where: "", kind: "Timeout", hint: "", ...card }));
  }

  function waiting() {
    return [...new Set(pending.values())];
  }

  /**
   * Send a message of an entry; its earlier ids stay valid.
   * @param {Pending} entry @param {object} [callbacks] of the front end
   */
  function post(entry, callbacks) {
    const id = `${prefix}-${(sent += 1)}`;
    entry.ids.push(id);
    entry.order = sent;
    entry.heard = Date.now();
    pending.set(id, entry);
    watch(entry);
    try {
      model.send({ id, type: entry.type, args: entry.args }, callbacks);
    } catch (error) {
      forget(entry);
      entry.reject(/** @type {Error} */ (error));
    }
  }

  /** @param {Pending} entry */
  function watch(entry) {
    clearTimeout(entry.timer);
    if (entry !== probe)
      entry.timer = setTimeout(
        () => onLate(entry),
        isInOrder(entry.type) ? TIMES.lateMs : TIMES.longLateMs,
      );
  }

  /** @param {Pending} entry */
  function onLate(entry) {
    entry.late = true;
    if (Date.now() - entry.heard >= TIMES.absoluteMs) fail(entry, giveUp(entry));
    else {
      watch(entry);
      sendProbe();
    }
    reportLate();
  }

  /** Ask whether the kernel answers at all; while one probe waits, no other is sent. */
  function sendProbe() {
    if (probe && Date.now() - probedAt < TIMES.absoluteMs / 10) return;
    if (probe) forget(probe);
    probedAt = Date.now();
    const entry = makeEntry(
      "ready",
      {},
      { quiet: true },
      () => {
        if (probe === entry) probe = null;
        onProbed(entry.order);
      },
      () => {
        if (probe !== entry) return; // the model refused to send
        probe = null;
        if (state === "live") lose();
        else setState("static");
      },
    );
    /** @param {{content?: {execution_state?: string}}} message of the kernel about the probe */
    const onStatus = (message) => {
      if (message?.content?.execution_state === "idle")
        setTimeout(() => probe === entry && lose(), TIMES.handledMs);
    };
    probe = entry;
    // A function with Jupyter's callbacks as properties: marimo calls what it is given here.
    post(
      entry,
      Object.assign(() => {}, { iopub: { status: onStatus } }),
    );
  }

  /**
   * The kernel has answered a probe: what was to be answered before it is lost.
   * @param {number} order
   */
  function onProbed(order) {
    for (const entry of waiting()) {
      if (!entry.late || entry.order > order) continue;
      if (isInOrder(entry.type) || Date.now() - entry.heard >= TIMES.silentMs) onReplyLost(entry);
    }
    reportLate();
  }

  /** @param {Pending} entry */
  function onReplyLost(entry) {
    if (!isRepeatable(entry.type) || entry.repeated) return fail(entry, lostReply(entry));
    entry.repeated = true;
    entry.late = false;
    return postAgain(entry);
  }

  /**
   * Long work that is still under way is ended first: else it would be done twice.
   * @param {Pending} entry
   */
  function postAgain(entry) {
    if (!isInOrder(entry.type)) {
      cancel(entry);
      for (const id of entry.ids.splice(0)) pending.delete(id);
    }
    post(entry);
  }

  /** The buffers of an answer were lost on the way. @param {Pending} entry */
  function askAsText(entry) {
    ask("buffers", { as_text: true }, { quiet: true }).catch(() => {});
    entry.asText = true;
    if (isRepeatable(entry.type)) return postAgain(entry);
    return fail(entry, unknownChange(entry));
  }

  /** The kernel no longer knows this widget: nothing that is pending will be answered. */
  function lose() {
    isLost = true;
    if (probe) forget(probe);
    probe = null;
    for (const entry of waiting()) fail(entry, RESTARTED);
    setState("static");
    reportLate();
  }

  function reportLate() {
    const count = waiting().filter((entry) => entry.late && !entry.quiet).length;
    if (count === lateBefore) return;
    lateBefore = count;
    for (const listener of lateListeners) listener(count);
  }

  /**
   * @param {string} type @param {Lnb.Args} args @param {Lnb.Options} options
   * @param {Pending['resolve']} resolve @param {Pending['reject']} reject @returns {Pending}
   */
  function makeEntry(type, args, { progress = null, quiet = false }, resolve, reject) {
    return {
      type,
      args,
      ids: [],
      order: 0,
      heard: 0,
      late: false,
      repeated: false,
      asText: false,
      quiet,
      progress,
      resolve,
      reject,
      timer: undefined,
    };
  }

  /** @param {Pending} entry */
  function cancel(entry) {
    for (const id of entry.ids) ask("cancel", { id }, { quiet: true }).catch(() => {});
  }

  /**
   * Send a request. Rejects with an error that carries an error card: the kernel's, or that of a
   * timeout. The promise has `cancel()` for long work, which reports `progress(done, total)`. A
   * `quiet` request is no action of the user: nothing is said while it is late.
   * @param {string} type @param {Lnb.Args} args @param {Lnb.Options} options @returns {Lnb.Asked}
   */
  function ask(type, args = {}, options = {}) {
    /** @type {(answer: Lnb.Answer) => void} */
    let resolve = () => {};
    /** @type {(error: Lnb.Failure) => void} */
    let reject = () => {};
    /** @type {Promise<Lnb.Answer>} */
    const answer = new Promise((...ends) => {
      [resolve, reject] = ends;
    });
    const entry = makeEntry(type, args, options, resolve, reject);
    if (isLost) fail(entry, RESTARTED);
    else post(entry);
    return Object.assign(answer, { cancel: () => cancel(entry) });
  }

  /**
   * A queue of requests where only the newest matters: one pending, one waiting. Long work (with
   * `progress`) is cancelled when a newer request comes; `cancel()` of the queue ends it all.
   * @param {Lnb.Options} options @returns {Lnb.Queue}
   */
  function line(options = {}) {
    let busy = false;
    /** @typedef {{type: string, args: Lnb.Args, done: Lnb.Done, failed: Lnb.Failed}} Wanted */
    /** @type {Wanted | null} */
    let next = null;
    /** @type {Lnb.Asked | null} */
    let current = null;
    /** @param {Wanted} wanted */
    async function run({ type, args, done, failed }) {
      busy = true;
      try {
        current = ask(type, args, options);
        const answer = await current;
        atOnce(() => done(answer));
      } catch (error) {
        if (!next) failed(/** @type {Lnb.Failure} */ (error));
      }
      busy = false;
      const queued = next;
      next = null;
      if (queued) run(queued);
    }
    /** @type {Lnb.Queue} */
    const request = (type, args, done, failed) => {
      const request = { type, args, done, failed };
      if (!busy) return run(request);
      next = request;
      return options.progress && current?.cancel();
    };
    request.cancel = () => {
      next = null;
      if (busy) current?.cancel();
    };
    return request;
  }

  /** @param {Pending} entry */
  function lostReply(entry) {
    if (!isRepeatable(entry.type)) return unknownChange(entry);
    return {
      title: "No answer from the kernel",
      message: `The kernel answers other requests, but not “${entry.type}”, which was sent twice.`,
      hint: "Try again. If that does not help, run the cell again.",
      retry,
    };
  }

  /** @param {Pending} entry */
  function giveUp(entry) {
    if (!isRepeatable(entry.type)) return unknownChange(entry);
    const minutes = Math.round(TIMES.absoluteMs / 60000);
    return {
      title: "No answer from the kernel",
      message:
        `Nothing was heard of “${entry.type}” for ${minutes} minutes. ` +
        "The kernel may be busy or gone.",
      hint: "Try again when its cell is done.",
      retry,
    };
  }

  /** @param {Pending} entry */
  function unknownChange(entry) {
    return {
      title: "No answer to a change",
      message: `The answer to “${entry.type}” was lost. The change may or may not have been made.`,
      hint: "Look at the newest version before you make the change again.",
      retry,
    };
  }

  /** The model was connected to a kernel, or lost it. */
  function onConnection() {
    if (state === "connecting") return;
    if (probe) forget(probe);
    probe = null;
    isLost = false;
    sendProbe();
    clearTimeout(connectTimer);
    connectTimer = setTimeout(() => probe && lose(), TIMES.connectMs);
  }

  model.on("msg:custom", onMessage);
  model.on("comm_live_update", onConnection);
  // The first message is ours: a kernel that lives answers it. Without an answer this is a picture.
  connectTimer = setTimeout(() => state === "connecting" && setState("static"), TIMES.connectMs);
  sendProbe();
  const heartbeat = setInterval(() => {
    if (state === "live" && Date.now() - heard >= TIMES.heartbeatMs && isVisible?.()) sendProbe();
  }, TIMES.heartbeatMs);

  return {
    ask,
    line,
    get state() {
      return state;
    },
    /** Whether the kernel was restarted, as opposed to a saved notebook that never had one. */
    get isLost() {
      return isLost;
    },
    /** Whether an answer that somebody waits for has not come yet. */
    get isWorking() {
      return waiting().some((entry) => entry !== probe && !entry.quiet);
    },
    /** Hear what each answer cost: `listener({requests, bytes, ms}, quiet)`. */
    onCost(listener) {
      costListeners.add(listener);
      return () => costListeners.delete(listener);
    },
    onState(listener) {
      stateListeners.add(listener);
      listener(state);
      return () => stateListeners.delete(listener);
    },
    /** Hear how many requests of the user have had no answer for some seconds. */
    onLate(listener) {
      lateListeners.add(listener);
      return () => lateListeners.delete(listener);
    },
    /** Send late reads again and probe the kernel. */
    tryAgain() {
      for (const entry of waiting()) {
        if (entry.late && isRepeatable(entry.type)) postAgain(entry);
      }
      probedAt = -Infinity;
      sendProbe();
    },
    /** What "Try again" in the card of a timeout does. */
    onRetry(work) {
      retry = work;
    },
    close() {
      clearTimeout(connectTimer);
      clearInterval(heartbeat);
      model.off("msg:custom", onMessage);
      model.off("comm_live_update", onConnection);
      for (const entry of waiting()) {
        if (state === "live" && isRepeatable(entry.type) && !isInOrder(entry.type)) cancel(entry);
      }
      for (const entry of waiting()) forget(entry);
      for (const listeners of [stateListeners, costListeners, lateListeners]) listeners.clear();
    },
  };
}
