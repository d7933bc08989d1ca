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

/** A request without an answer. */
class Pending {
  /** @type {string[]} of the message and of its repetitions; the first answer counts */
  ids = [];
  order = 0; // of the last message sent for it
  heard = 0; // when it was sent or last reported progress
  late = false;
  repeated = false;
  asText = false; // it was sent again because the buffers of its answer were lost
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  timer;

  /**
   * @param {string} type @param {Lnb.Args} args @param {Lnb.Options} options
   * @param {(answer: Lnb.Answer) => void} resolve @param {(error: Lnb.Failure) => void} reject
   */
  constructor(type, args, { progress = null, quiet = false }, resolve, reject) {
    this.type = type;
    this.args = args;
    this.progress = progress;
    this.quiet = quiet;
    this.resolve = resolve;
    this.reject = reject;
  }
}

/** @type {Lnb.Cost} */
const NO_COST = { requests: 0, bytes: 0, ms: 0 };

/** What views use to ask the kernel. */
export class Kernel {
  /** @type {Map<string, Pending>} by id of each message */
  pending = new Map();
  /** @type {Set<(state: Lnb.State) => void>} */
  stateListeners = new Set();
  /** What the answers cost: all of them, and the last that somebody waited for. */
  costs;
  /** @type {Set<() => void>} */
  costListeners = new Set();
  /** @type {Set<(count: number) => void>} */
  lateListeners = new Set();
  /** @type {Lnb.State} */
  state = "connecting";
  /** Whether the kernel was restarted, as opposed to a saved notebook that never had one. */
  isLost = false;
  sent = 0;
  /** @type {Pending | null} */
  probe = null;
  probedAt = -Infinity;
  lateBefore = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  connectTimer;

  /**
   * @param {Lnb.Model} model the widget's model
   * @param {{isVisible?: (() => boolean)|null, cost?: Lnb.Cost}} [options] with `isVisible` a
   *   silent kernel is probed while it is true; `cost` of the first screen
   */
  constructor(model, { isVisible = null, cost = NO_COST } = {}) {
    this.model = model;
    this.prefix = `${Math.random().toString(36).slice(2, 8)}-${(pages += 1)}`;
    this.heard = Date.now();
    this.costs = { total: cost, last: cost };
    this.retry = () => {};
    model.on("msg:custom", this.onMessage);
    model.on("comm_live_update", this.onConnection);
    // The first message is ours: a kernel that lives answers it. Without an answer this is a
    // picture.
    this.connectTimer = setTimeout(
      () => this.state === "connecting" && this.setState("static"),
      TIMES.connectMs,
    );
    this.sendProbe();
    this.heartbeat = setInterval(() => {
      if (this.state === "live" && Date.now() - this.heard >= TIMES.heartbeatMs && isVisible?.())
        this.sendProbe();
    }, TIMES.heartbeatMs);
  }

  /** @param {Lnb.State} next */
  setState(next) {
    if (next === this.state) return;
    this.state = next;
    for (const listener of [...this.stateListeners]) listener(this.state);
  }

  /** @param {Lnb.Json} message @param {Lnb.Buffer[]} [buffers] */
  onMessage = (message, buffers) => {
    const entry = message && this.pending.get(message.id);
    if (!entry) return; // answered already, given up, or somebody else's
    this.heard = Date.now();
    if (message.progress) {
      entry.heard = this.heard;
      entry.late = false;
      this.watch(entry);
      this.reportLate();
      entry.progress?.(...message.progress);
      return;
    }
    const parts = message.base64?.map(bytesOfText) ?? buffers ?? [];
    if (message.ok && !isWhole(parts, message.num_buffers) && !entry.asText)
      return this.askAsText(entry);
    this.forget(entry);
    if (message.io) this.charge(message.io, entry.quiet);
    this.isLost = false;
    clearTimeout(this.connectTimer);
    this.setState("live");
    if (message.ok) entry.resolve({ result: message.result, buffers: parts });
    else entry.reject(this.errorOf(message.error));
    this.reportLate();
  };

  /** @param {Lnb.Card} card @returns {Lnb.Failure} */
  errorOf(card) {
    return Object.assign(new Error(card.message), { card });
  }

  /** @param {Pending} entry */
  forget(entry) {
    clearTimeout(entry.timer);
    for (const id of entry.ids) this.pending.delete(id);
  }

  /** @param {Pending} entry @param {Partial<Lnb.Card> & {title: string, message: string}} card */
  fail(entry, card) {
    this.forget(entry);
    entry.reject(this.errorOf({ where: "", kind: "Timeout", hint: "", ...card }));
  }

  waiting() {
    return [...new Set(this.pending.values())];
  }

  /**
   * Send a message of an entry; its earlier ids stay valid.
   * @param {Pending} entry @param {object} [callbacks] of the front end
   */
  post(entry, callbacks) {
    const id = `${this.prefix}-${(this.sent += 1)}`;
    entry.ids.push(id);
    entry.order = this.sent;
    entry.heard = Date.now();
    this.pending.set(id, entry);
    this.watch(entry);
    try {
      this.model.send({ id, type: entry.type, args: entry.args }, callbacks);
    } catch (error) {
      this.forget(entry);
      entry.reject(/** @type {Error} */ (error));
    }
  }

  /** @param {Pending} entry */
  watch(entry) {
    clearTimeout(entry.timer);
    if (entry !== this.probe)
      entry.timer = setTimeout(
        () => this.timedOut(entry),
        isInOrder(entry.type) ? TIMES.lateMs : TIMES.longLateMs,
      );
  }

  /** @param {Pending} entry */
  timedOut(entry) {
    entry.late = true;
    if (Date.now() - entry.heard >= TIMES.absoluteMs) {
      const minutes = Math.round(TIMES.absoluteMs / 60000);
      this.giveUp(
        entry,
        `Nothing was heard of “${entry.type}” for ${minutes} minutes. ` +
          "The kernel may be busy or gone.",
        "Try again when its cell is done.",
      );
    } else {
      this.watch(entry);
      this.sendProbe();
    }
    this.reportLate();
  }

  /** Ask whether the kernel answers at all; while one probe waits, no other is sent. */
  sendProbe() {
    if (this.probe && Date.now() - this.probedAt < TIMES.absoluteMs / 10) return;
    this.endProbe();
    this.probedAt = Date.now();
    const entry = new Pending(
      "ready",
      {},
      { quiet: true },
      () => {
        if (this.probe === entry) this.probe = null;
        this.onProbed(entry.order);
      },
      () => {
        if (this.probe !== entry) return; // the model refused to send
        this.probe = null;
        if (this.state === "live") this.lose();
        else this.setState("static");
      },
    );
    /** @param {{content?: {execution_state?: string}}} message of the kernel about the probe */
    const onStatus = (message) => {
      if (message?.content?.execution_state === "idle")
        setTimeout(() => this.probe === entry && this.lose(), TIMES.handledMs);
    };
    this.probe = entry;
    // A function with Jupyter's callbacks as properties: marimo calls what it is given here.
    this.post(
      entry,
      Object.assign(() => {}, { iopub: { status: onStatus } }),
    );
  }

  endProbe() {
    if (this.probe) this.forget(this.probe);
    this.probe = null;
  }

  /**
   * The kernel has answered a probe: what was to be answered before it is lost.
   * @param {number} order
   */
  onProbed(order) {
    for (const entry of this.waiting()) {
      if (!entry.late || entry.order > order) continue;
      if (isInOrder(entry.type) || Date.now() - entry.heard >= TIMES.silentMs)
        this.onReplyLost(entry);
    }
    this.reportLate();
  }

  /** @param {Pending} entry */
  onReplyLost(entry) {
    if (!isRepeatable(entry.type) || entry.repeated)
      return this.giveUp(
        entry,
        `The kernel answers other requests, but not “${entry.type}”, which was sent twice.`,
        "Try again. If that does not help, run the cell again.",
      );
    entry.repeated = true;
    entry.late = false;
    return this.postAgain(entry);
  }

  /**
   * Long work that is still under way is ended first: else it would be done twice.
   * @param {Pending} entry
   */
  postAgain(entry) {
    if (!isInOrder(entry.type)) {
      this.cancel(entry);
      for (const id of entry.ids.splice(0)) this.pending.delete(id);
    }
    this.post(entry);
  }

  /** The buffers of an answer were lost on the way. @param {Pending} entry */
  askAsText(entry) {
    this.ask("buffers", { as_text: true }, { quiet: true }).catch(() => {});
    entry.asText = true;
    if (isRepeatable(entry.type)) return this.postAgain(entry);
    return this.giveUp(entry, "", "");
  }

  /** The kernel no longer knows this widget: nothing that is pending will be answered. */
  lose() {
    this.isLost = true;
    this.endProbe();
    for (const entry of this.waiting()) this.fail(entry, RESTARTED);
    this.setState("static");
    this.reportLate();
  }

  reportLate() {
    const count = this.waiting().filter((entry) => entry.late && !entry.quiet).length;
    if (count === this.lateBefore) return;
    this.lateBefore = count;
    for (const listener of this.lateListeners) listener(count);
  }

  /** @param {Pending} entry */
  cancel(entry) {
    for (const id of entry.ids) this.ask("cancel", { id }, { quiet: true }).catch(() => {});
  }

  /**
   * Send a request. Rejects with an error that carries an error card: the kernel's, or that of a
   * timeout. The promise has `cancel()` for long work, which reports `progress(done, total)`. A
   * `quiet` request is no action of the user: nothing is said while it is late.
   * @param {string} type @param {Lnb.Args} args @param {Lnb.Options} options @returns {Lnb.Asked}
   */
  ask = (type, args = {}, options = {}) => {
    /** @type {(answer: Lnb.Answer) => void} */
    let resolve = () => {};
    /** @type {(error: Lnb.Failure) => void} */
    let reject = () => {};
    /** @type {Promise<Lnb.Answer>} */
    const answer = new Promise((...ends) => {
      [resolve, reject] = ends;
    });
    const entry = new Pending(type, args, options, resolve, reject);
    if (this.isLost) this.fail(entry, RESTARTED);
    else this.post(entry);
    return Object.assign(answer, { cancel: () => this.cancel(entry) });
  };

  /** See `newestOnly`. @param {Lnb.Options} options @returns {Lnb.Queue} */
  line(options = {}) {
    return newestOnly(this.ask, options);
  }

  /**
   * Give a request up; whether a change was made is then not known.
   * @param {Pending} entry @param {string} message @param {string} hint
   */
  giveUp(entry, message, hint) {
    const card = isRepeatable(entry.type)
      ? { title: "No answer from the kernel", message, hint }
      : {
          title: "No answer to a change",
          message:
            `The answer to “${entry.type}” was lost. ` +
            "The change may or may not have been made.",
          hint: "Look at the newest version before you make the change again.",
        };
    this.fail(entry, { ...card, retry: this.retry });
  }

  /** The model was connected to a kernel, or lost it. */
  onConnection = () => {
    if (this.state === "connecting") return;
    this.endProbe();
    this.isLost = false;
    this.sendProbe();
    clearTimeout(this.connectTimer);
    this.connectTimer = setTimeout(() => this.probe && this.lose(), TIMES.connectMs);
  };

  /** Whether an answer that somebody waits for has not come yet. */
  get isWorking() {
    return this.waiting().some((entry) => entry !== this.probe && !entry.quiet);
  }

  /** @param {Lnb.Cost} cost @param {boolean} quiet */
  charge(cost, quiet) {
    const { requests, bytes, ms } = this.costs.total;
    const total = {
      requests: requests + cost.requests,
      bytes: bytes + cost.bytes,
      ms: ms + cost.ms,
    };
    this.costs = { total, last: quiet ? this.costs.last : cost };
    for (const listener of this.costListeners) listener();
  }

  /** Hear that `costs` changed. @param {() => void} listener */
  onCost(listener) {
    this.costListeners.add(listener);
    return () => this.costListeners.delete(listener);
  }

  /** @param {(state: Lnb.State) => void} listener */
  onState(listener) {
    this.stateListeners.add(listener);
    listener(this.state);
    return () => this.stateListeners.delete(listener);
  }

  /**
   * Hear how many requests of the user have had no answer for some seconds.
   * @param {(count: number) => void} listener
   */
  onLate(listener) {
    this.lateListeners.add(listener);
    return () => this.lateListeners.delete(listener);
  }

  /** Send late reads again and probe the kernel. */
  tryAgain() {
    for (const entry of this.waiting()) {
      if (entry.late && isRepeatable(entry.type)) this.postAgain(entry);
    }
    this.probedAt = -Infinity;
    this.sendProbe();
  }

  /** What "Try again" in the card of a timeout does. @param {() => void} work */
  onRetry(work) {
    this.retry = work;
  }

  close() {
    clearTimeout(this.connectTimer);
    clearInterval(this.heartbeat);
    this.model.off("msg:custom", this.onMessage);
    this.model.off("comm_live_update", this.onConnection);
    for (const entry of this.waiting()) {
      if (this.state === "live" && isRepeatable(entry.type) && !isInOrder(entry.type))
        this.cancel(entry);
    }
    for (const entry of this.waiting()) this.forget(entry);
    for (const listeners of [this.stateListeners, this.costListeners, this.lateListeners])
      listeners.clear();
  }
}

/**
 * A queue of requests where only the newest matters: one pending, one waiting. Long work (with
 * `progress`) is cancelled when a newer request comes; `cancel()` of the queue ends it all.
 * @param {Lnb.Kernel["ask"]} ask @param {Lnb.Options} options @returns {Lnb.Queue}
 */
function newestOnly(ask, options) {
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
