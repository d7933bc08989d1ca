// What a view gets, for tests: a kernel that records what is asked and answers when it is told to.

import { ShownRows } from "../../lance_nb/explorer/js/shown_rows.js";

const NO_COST = { requests: 0, bytes: 0, ms: 0 };

/** A kernel whose requests are answered by hand. */
export function fakeKernel() {
  const kernel = {
    state: "live",
    isLost: false,
    isWorking: false,
    /** @type {any[]} every request, in order */
    asked: [],
    cancelled: 0,
    stateListeners: new Set(),
    costs: { total: NO_COST, last: NO_COST },
    costListeners: new Set(),
    lateListeners: new Set(),
    tried: 0,
    ask(type, args = {}, options = {}) {
      let ends;
      const answer = new Promise((resolve, reject) => {
        ends = { resolve, reject };
      });
      answer.cancel = () => {
        kernel.cancelled += 1;
      };
      kernel.asked.push({
        type,
        args,
        options,
        answer: (result, buffers = []) => {
          ends.resolve({ result, buffers });
          return settled();
        },
        fail: (card) => {
          ends.reject(Object.assign(new Error(card.message), { card }));
          return settled();
        },
      });
      return answer;
    },
    line(options = {}) {
      const request = (type, args, done, failed) => {
        kernel.asked.push({
          type,
          args,
          options,
          answer: (result, buffers = []) => done({ result, buffers }),
          fail: (card) => failed(Object.assign(new Error(card.message), { card })),
        });
      };
      request.cancel = () => {
        kernel.cancelled += 1;
      };
      return request;
    },
    onState(listener) {
      kernel.stateListeners.add(listener);
      listener(kernel.state);
      return () => kernel.stateListeners.delete(listener);
    },
    onCost(listener) {
      kernel.costListeners.add(listener);
      return () => kernel.costListeners.delete(listener);
    },
    onLate(listener) {
      kernel.lateListeners.add(listener);
      return () => kernel.lateListeners.delete(listener);
    },
    onRetry() {},
    tryAgain() {
      kernel.tried += 1;
    },
    /** The newest request of a type. */
    last: (type) => kernel.asked.filter((request) => request.type === type).at(-1),
    count: (type) => kernel.asked.filter((request) => request.type === type).length,
  };
  return kernel;
}

/** Wait until promises that are settled have been heard of. */
export const settled = () => new Promise((resolve) => setImmediate(resolve));

/** A context over `screen`; what a view does with it is noted in lists. */
export function fakeContext(screen = {}, kernel = fakeKernel()) {
  const painters = [];
  const closing = [];
  const noted = { travels: [], announced: [], codes: [], details: [], refreshed: [], went: [] };
  let now = { branch: null, version: 3, locked: true, timeline: timeline(), ...screen };
  const context = {
    ...noted,
    kernel,
    shared: { window: null },
    root: globalThis.document?.createElement("section"),
    height: 400,
    screen: () => now,
    place: () => ({ branch: now.branch, version: now.version }),
    onScreen(paint, parts = null) {
      painters.push({ paint, parts });
      paint(now, false);
    },
    refresh(parts) {
      noted.refreshed.push(parts);
      now = { ...now, ...parts };
      for (const { paint } of painters) paint(now, true);
    },
    travel: (to) => noted.travels.push(to),
    go: (tab, target) => Boolean(noted.went.push([tab, target])),
    has: () => true,
    code: (lines) => noted.codes.push(lines),
    detail: { show: (what) => noted.details.push(what), clear: () => noted.details.push(null) },
    problem(error) {
      const element = document.createElement("p");
      element.textContent = `problem: ${error.message}`;
      return element;
    },
    announce: (text) => noted.announced.push(text),
    /** What the views say is on the screen, by name. */
    described: new Map(),
    describe: (name, state) => context.described.set(name, state),
    onClose: (work) => closing.push(work),
    /** Another version is shown. */
    show(next, patched = false) {
      now = { ...now, ...next };
      for (const { paint } of painters) paint(now, patched);
    },
    close: () => closing.splice(0).forEach((work) => work()),
  };
  context.rows = new ShownRows(context);
  return context;
}

/** main with versions 1 to 3 and 6 to 7, and dev with 4 to 5 from main:3. */
export function timeline() {
  const bar = (version, added, removed) => ({
    version,
    time: "",
    time_ms: null,
    operation: "Append",
    message: "",
    rows: 10,
    added,
    removed,
  });
  const main = [[1, 3], [6, 2]]; // biome-ignore format: pairs
  return {
    branch: null,
    version: 3,
    lanes: [
      {
        branch: null,
        label: "main",
        runs: main,
        older: 0,
        fork: null,
        details: [bar(1, 10, 0), bar(2, 5, 1), bar(3, 0, 2)],
      },
      {
        branch: "dev",
        label: "dev",
        runs: [[4, 2]],
        older: 0,
        fork: [null, 3],
        details: [bar(4, null, null)],
      },
    ],
    hidden_branches: 0,
    tags: [
      { name: "v1", branch: null, version: 2 },
      { name: "v1b", branch: null, version: 2 },
      { name: "d", branch: "dev", version: 5 },
    ],
    hidden_tags: 0,
  };
}
