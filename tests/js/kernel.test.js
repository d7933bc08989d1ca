// The protocol with the kernel: timeouts, one retry, queues, and a kernel that is gone.

import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { Kernel, TIMES } from "../../lance_nb/explorer/js/kernel.js";

/** A widget's model that records what is sent. */
function fakeModel() {
  const listeners = new Map();
  const model = {
    /** @type {{id: string, type: string, args: Object, callbacks: any}[]} */
    sent: [],
    refuses: false,
    on: (name, listener) => listeners.set(name, [...(listeners.get(name) ?? []), listener]),
    off: (name, listener) =>
      listeners.set(
        name,
        (listeners.get(name) ?? []).filter((known) => known !== listener),
      ),
    fire: (name, ...values) =>
      (listeners.get(name) ?? []).forEach((listener) => listener(...values)),
    listening: () => [...listeners.values()].flat().length,
    send(content, callbacks) {
      if (model.refuses) throw new Error("Comm is closed");
      model.sent.push({ ...content, callbacks });
    },
    of: (type) => model.sent.filter((message) => message.type === type),
    answer: (message, result = {}, buffers = []) =>
      model.fire("msg:custom", { id: message.id, ok: true, result }, buffers),
    refuse: (message, card) =>
      model.fire("msg:custom", { id: message.id, ok: false, error: card }, []),
    progress: (message, done, total) =>
      model.fire("msg:custom", { id: message.id, progress: [done, total] }),
    idle: (message) => message.callbacks.iopub.status({ content: { execution_state: "idle" } }),
  };
  return model;
}

test("the callbacks of a probe fit Jupyter, which reads them, and marimo, which calls them", () => {
  const model = fakeModel();
  const kernel = new Kernel(model);
  const { callbacks } = model.of("ready")[0];
  assert.equal(typeof callbacks.iopub.status, "function");
  assert.equal(callbacks(), undefined);
  kernel.close();
});

test("the kernel is working while an answer that somebody waits for has not come", async () => {
  const model = fakeModel();
  const kernel = new Kernel(model);
  assert.equal(kernel.isWorking, false); // the probe does not count
  const quiet = kernel.ask("news", {}, { quiet: true });
  assert.equal(kernel.isWorking, false);
  const asked = kernel.ask("rows.page", {});
  assert.equal(kernel.isWorking, true);
  model.answer(model.of("rows.page")[0]);
  model.answer(model.of("news")[0]);
  await Promise.all([asked, quiet]);
  assert.equal(kernel.isWorking, false);
  kernel.close();
});

/** Remember how a promise ends. */
function outcome(promise) {
  const found = { value: undefined, card: undefined };
  promise.then(
    (value) => {
      found.value = value;
    },
    (error) => {
      found.card = error.card ?? error;
    },
  );
  return found;
}

const settled = () => new Promise((resolve) => setImmediate(resolve));
const pass = async (ms) => {
  mock.timers.tick(ms);
  await settled();
};

let model;
let kernel;
let lates;

beforeEach(() => {
  mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"] });
  model = fakeModel();
  kernel = new Kernel(model);
  lates = [];
  kernel.onLate((count) => lates.push(count));
});
afterEach(() => {
  kernel.close();
  mock.timers.reset();
});

const connect = async () => {
  model.answer(model.of("ready")[0]);
  await settled();
};

test("a kernel that answers the first message is live, else the view is static", async () => {
  const states = [];
  kernel.onState((state) => states.push(state));
  await pass(TIMES.connectMs - 1);
  assert.deepEqual(states, ["connecting"]);
  await pass(1);
  assert.equal(kernel.state, "static");
  assert.equal(kernel.isLost, false);
  await connect();
  assert.deepEqual(states, ["connecting", "static", "live"]);
});

test("a kernel that answers at once stays live", async () => {
  await connect();
  await pass(TIMES.connectMs * 2);
  assert.equal(kernel.state, "live");
});

test("a model that cannot send leaves a saved picture", () => {
  const silent = fakeModel();
  silent.refuses = true;
  const other = new Kernel(silent);
  assert.equal(other.state, "static");
  assert.equal(other.isLost, false);
  other.close();
});

const COST = { requests: 1, bytes: 5, ms: 7 };

test("an answer resolves its request only, with its buffers and costs", async () => {
  await connect();
  const costs = [];
  const stop = kernel.onCost(() => costs.push(kernel.costs));
  const [one, other] = [
    outcome(kernel.ask("rows", { offset: 1 })),
    outcome(kernel.ask("cell", {}, { quiet: true })),
  ];
  const [rows, cell] = [model.of("rows")[0], model.of("cell")[0]];
  assert.notEqual(rows.id, cell.id);
  assert.deepEqual(rows.args, { offset: 1 });
  model.fire("msg:custom", { id: cell.id, ok: true, result: 2, io: COST }, undefined);
  await settled();
  assert.deepEqual(other.value, { result: 2, buffers: [] });
  assert.equal(one.value, undefined);
  stop();
  model.fire("msg:custom", { id: rows.id, ok: true, result: 3, io: COST }, ["buffer"]);
  await settled();
  assert.deepEqual(one.value, { result: 3, buffers: ["buffer"] });
  const none = { requests: 0, bytes: 0, ms: 0 };
  assert.deepEqual(costs, [{ total: COST, last: none }]); // nobody waited for the quiet one
  assert.deepEqual(kernel.costs, { total: { requests: 2, bytes: 10, ms: 14 }, last: COST });
});

test("a refusal rejects with the kernel's error card", async () => {
  await connect();
  const found = outcome(kernel.ask("rows"));
  model.refuse(model.of("rows")[0], { message: "no such row" });
  await settled();
  assert.deepEqual(found.card, { message: "no such row" });
  assert.equal(kernel.state, "live");
});

test("messages of others and empty ones are ignored", () => {
  model.fire("msg:custom", undefined);
  model.fire("msg:custom", { id: "stranger", ok: true });
  assert.equal(kernel.state, "connecting");
});

test("a busy kernel is reported, not an error, and answers when it is done", async () => {
  await connect();
  const found = outcome(kernel.ask("rows"));
  await pass(TIMES.lateMs - 1);
  assert.deepEqual(lates, []);
  await pass(1);
  assert.deepEqual(lates, [1]);
  await pass(TIMES.lateMs * 20);
  assert.equal(found.card, undefined);
  assert.equal(model.of("rows").length, 1);
  assert.ok(model.of("ready").length <= 5);
  model.answer(model.of("rows")[0], "rows");
  await settled();
  assert.equal(found.value.result, "rows");
  assert.equal(lates.at(-1), 0);
});

test("quiet requests are late without a word", async () => {
  await connect();
  outcome(kernel.ask("news", {}, { quiet: true }));
  await pass(TIMES.lateMs);
  assert.deepEqual(lates, []);
  assert.equal(model.of("ready").length, 2);
});

test("a read whose reply was lost is sent once more", async () => {
  await connect();
  const found = outcome(kernel.ask("rows", { offset: 7 }));
  await pass(TIMES.lateMs);
  model.answer(model.of("ready")[1]); // the kernel answers, so the reply is lost
  await settled();
  assert.equal(model.of("rows").length, 2);
  assert.deepEqual(model.of("rows")[1].args, { offset: 7 });
  assert.equal(lates.at(-1), 0);
  model.answer(model.of("rows")[1], "again");
  await settled();
  assert.equal(found.value.result, "again");
  model.answer(model.of("rows")[0], "late"); // harmless
  await settled();
  assert.equal(found.value.result, "again");
});

test("the first reply counts when both come", async () => {
  await connect();
  const found = outcome(kernel.ask("rows"));
  await pass(TIMES.lateMs);
  model.answer(model.of("ready")[1]);
  await settled();
  model.answer(model.of("rows")[0], "first");
  await settled();
  assert.equal(found.value.result, "first");
});

test("a read that is lost twice is rejected with a card that can try again", async () => {
  await connect();
  let retried = 0;
  kernel.onRetry(() => {
    retried += 1;
  });
  const found = outcome(kernel.ask("rows"));
  await pass(TIMES.lateMs);
  model.answer(model.of("ready")[1]);
  await settled();
  await pass(TIMES.lateMs);
  model.answer(model.of("ready")[2]);
  await settled();
  assert.equal(model.of("rows").length, 2);
  assert.equal(found.card.title, "No answer from the kernel");
  assert.equal(found.card.kind, "Timeout");
  assert.equal(found.card.where, "");
  assert.match(found.card.message, /“rows”, which was sent twice/);
  found.card.retry();
  assert.equal(retried, 1);
  for (const message of model.of("rows")) model.answer(message, "late");
  await settled();
  assert.equal(found.value, undefined);
  assert.equal(kernel.state, "live");
});

test("a request sent after the probe is not taken for lost", async () => {
  await connect();
  outcome(kernel.ask("rows"));
  await pass(TIMES.lateMs);
  const later = outcome(kernel.ask("cell"));
  model.answer(model.of("ready")[1]);
  await settled();
  assert.equal(model.of("rows").length, 2);
  assert.equal(model.of("cell").length, 1);
  assert.equal(later.card, undefined);
});

test("a request that is not late yet is not taken for lost", async () => {
  await connect();
  outcome(kernel.ask("rows"));
  await pass(TIMES.lateMs - 1000);
  outcome(kernel.ask("cell"));
  await pass(1000);
  model.answer(model.of("ready")[1]);
  await settled();
  assert.equal(model.of("rows").length, 2);
  assert.equal(model.of("cell").length, 1);
});

test("a request is given up by its own age", async () => {
  await connect();
  await pass(TIMES.absoluteMs * 0.7);
  const found = outcome(kernel.ask("rows"));
  await pass(TIMES.lateMs);
  assert.equal(found.card, undefined);
});

for (const type of ["refs.create", "stage.remove", "lock", "an unknown one"]) {
  test(`a request that writes is sent once: ${type}`, async () => {
    await connect();
    const found = outcome(kernel.ask(type));
    await pass(TIMES.longLateMs);
    kernel.tryAgain();
    for (const message of model.of("ready").slice(1)) model.answer(message);
    await settled();
    await pass(TIMES.silentMs);
    for (const message of model.of("ready").slice(1)) model.answer(message);
    await settled();
    assert.equal(model.of(type).length, 1);
    assert.equal(found.card.title, "No answer to a change");
    assert.match(found.card.message, /may or may not have been made/);
  });
}

test("long work is alive while it reports progress", async () => {
  await connect();
  const seen = [];
  const found = outcome(
    kernel.ask("storage.space", {}, { progress: (...values) => seen.push(values) }),
  );
  const message = model.of("storage.space")[0];
  for (let step = 1; step <= 20; step += 1) {
    await pass(TIMES.longLateMs - 1);
    model.progress(message, step, 20);
    for (const probe of model.of("ready")) model.answer(probe);
  }
  assert.equal(seen.length, 20);
  assert.deepEqual(seen.at(-1), [20, 20]);
  assert.deepEqual(lates, []);
  model.answer(message, "space");
  await settled();
  assert.equal(found.value.result, "space");
});

test("progress takes back that a request is late", async () => {
  await connect();
  outcome(kernel.ask("storage.space"));
  await pass(TIMES.longLateMs);
  assert.deepEqual(lates, [1]);
  model.progress(model.of("storage.space")[0], 1, 2);
  assert.deepEqual(lates, [1, 0]);
});

test("long work that is silent in a kernel that answers is cancelled and sent again", async () => {
  await connect();
  const found = outcome(kernel.ask("storage.space"));
  const answerProbes = () => model.of("ready").forEach((probe) => model.answer(probe));
  for (let spent = 0; spent < TIMES.silentMs - TIMES.longLateMs; spent += TIMES.longLateMs) {
    await pass(TIMES.longLateMs);
    answerProbes();
    await settled();
    assert.equal(model.of("storage.space").length, 1);
  }
  await pass(TIMES.longLateMs);
  answerProbes();
  await settled();
  const [first, second] = model.of("storage.space");
  assert.deepEqual(
    model.of("cancel").map((message) => message.args.id),
    [first.id],
  );
  model.refuse(first, { message: "cancelled" }); // answered meanwhile: nobody waits for it
  model.answer(second, "space");
  await settled();
  assert.equal(found.value.result, "space");
});

test("a request of which nothing is heard is given up at last", async () => {
  await connect();
  const [read, write] = [outcome(kernel.ask("rows")), outcome(kernel.ask("stage.commit"))];
  await pass(TIMES.absoluteMs - TIMES.longLateMs);
  assert.equal(read.card, undefined);
  await pass(TIMES.longLateMs);
  assert.match(read.card.message, /for 10 minutes/);
  assert.match(write.card.title, /No answer to a change/);
  assert.equal(lates.at(-1), 0);
});

test("trying again sends late reads again, at once", async () => {
  await connect();
  const found = outcome(kernel.ask("rows"));
  outcome(kernel.ask("refs.create"));
  await pass(TIMES.lateMs);
  const young = outcome(kernel.ask("cell"));
  const probes = model.of("ready").length;
  kernel.tryAgain();
  assert.equal(model.of("rows").length, 2);
  assert.equal(model.of("refs.create").length, 1);
  assert.equal(model.of("cell").length, 1);
  assert.equal(model.of("ready").length, probes + 1);
  model.answer(model.of("rows")[1], "rows");
  await settled();
  assert.equal(found.value.result, "rows");
  assert.equal(young.value, undefined);
});

test("a probe that is handled without an answer: the kernel was restarted", async () => {
  await connect();
  const found = outcome(kernel.ask("rows"));
  await pass(TIMES.lateMs);
  const probe = model.of("ready")[1];
  probe.callbacks.iopub.status({ content: { execution_state: "busy" } });
  await pass(TIMES.handledMs);
  assert.equal(kernel.state, "live");
  model.idle(probe);
  await pass(TIMES.handledMs - 1);
  assert.equal(kernel.state, "live");
  await pass(1);
  assert.equal(kernel.state, "static");
  assert.equal(kernel.isLost, true);
  assert.equal(found.card.title, "The kernel was restarted");
  assert.equal(lates.at(-1), 0);
  const asked = outcome(kernel.ask("rows"));
  await settled();
  assert.equal(asked.card.title, "The kernel was restarted");
  assert.equal(model.of("rows").length, 1);
});

test("a probe whose answer follows soon after is answered", async () => {
  model.idle(model.of("ready")[0]);
  await pass(TIMES.connectMs - 1);
  await connect();
  await pass(TIMES.handledMs);
  assert.equal(kernel.state, "live");
});

test("a disconnected model is probed at once", async () => {
  await connect();
  model.fire("comm_live_update");
  assert.equal(model.of("ready").length, 2);
  await pass(TIMES.connectMs - 1);
  assert.equal(kernel.state, "live");
  await pass(1);
  assert.equal(kernel.state, "static");
  assert.equal(kernel.isLost, true);
  model.fire("comm_live_update"); // connected again
  model.answer(model.of("ready")[2]);
  await settled();
  await pass(TIMES.connectMs);
  assert.equal(kernel.state, "live");
  assert.equal(kernel.isLost, false);
});

test("a model that was disconnected and answers stays live", async () => {
  await connect();
  model.fire("comm_live_update");
  model.answer(model.of("ready")[1]);
  await settled();
  await pass(TIMES.connectMs);
  assert.equal(kernel.state, "live");
});

test("a closed comm means a lost kernel", async () => {
  await connect();
  model.refuses = true;
  const found = outcome(kernel.ask("rows"));
  model.fire("comm_live_update");
  await settled();
  assert.equal(found.card.message, "Comm is closed");
  assert.equal(kernel.isLost, true);
});

test("a silent kernel is probed while the view is visible", async () => {
  let visible = false;
  const seen = new Kernel(model, { isVisible: () => visible });
  const probes = () => model.of("ready").length;
  model.answer(model.of("ready")[1]);
  await settled();
  await pass(TIMES.heartbeatMs * 3);
  assert.equal(probes(), 2);
  visible = true;
  await pass(TIMES.heartbeatMs);
  assert.equal(probes(), 3);
  await pass(TIMES.heartbeatMs);
  assert.equal(probes(), 3); // one at a time
  model.answer(model.of("ready")[2]);
  await pass(TIMES.heartbeatMs - 1);
  assert.equal(probes(), 3); // it spoke a moment ago
  await pass(TIMES.heartbeatMs + 1);
  assert.equal(probes(), 4);
  seen.close();
});

test("cancel names the request", async () => {
  await connect();
  const asked = kernel.ask("storage.space");
  outcome(asked);
  asked.cancel();
  assert.deepEqual(model.of("cancel")[0].args, { id: model.of("storage.space")[0].id });
});

test("a queue keeps one request pending and the newest waiting", async () => {
  await connect();
  const request = kernel.line();
  const done = [];
  const failed = [];
  for (const offset of [1, 2, 3])
    request(
      "rows",
      { offset },
      ({ result }) => done.push(result),
      (error) => failed.push(error),
    );
  assert.deepEqual(
    model.of("rows").map((message) => message.args.offset),
    [1],
  );
  model.refuse(model.of("rows")[0], { message: "no" });
  await settled();
  assert.deepEqual(failed, []); // nobody waits for it any more
  assert.deepEqual(
    model.of("rows").map((message) => message.args.offset),
    [1, 3],
  );
  model.answer(model.of("rows")[1], "three");
  await settled();
  assert.deepEqual(done, ["three"]);
  request(
    "rows",
    { offset: 4 },
    () => {},
    (error) => failed.push(error.card.message),
  );
  model.refuse(model.of("rows")[2], { message: "no" });
  await settled();
  assert.deepEqual(failed, ["no"]);
});

test("a queue goes on after a lost reply", async () => {
  await connect();
  const request = kernel.line();
  const done = [];
  const failed = [];
  request(
    "rows",
    { offset: 1 },
    () => done.push(1),
    (error) => failed.push(error.card.kind),
  );
  for (const at of [1, 2]) {
    await pass(TIMES.lateMs);
    model.answer(model.of("ready")[at]);
    await settled();
  }
  assert.deepEqual(failed, ["Timeout"]);
  request(
    "rows",
    { offset: 2 },
    () => done.push(2),
    () => {},
  );
  model.answer(model.of("rows").at(-1));
  await settled();
  assert.deepEqual(done, [2]);
});

test("a queue of long work cancels what is no longer wanted", async () => {
  await connect();
  const request = kernel.line({ progress() {} });
  request(
    "changes.rows",
    { at: 1 },
    () => {},
    () => {},
  );
  request(
    "changes.rows",
    { at: 2 },
    () => {},
    () => {},
  );
  assert.equal(model.of("cancel").length, 1);
  request.cancel();
  assert.equal(model.of("cancel").length, 2);
  model.refuse(model.of("changes.rows")[0], { message: "cancelled" });
  await settled();
  assert.equal(model.of("changes.rows").length, 1);
  request.cancel();
  assert.equal(model.of("cancel").length, 2);
});

test("a queue of short work cancels nothing", async () => {
  await connect();
  const request = kernel.line();
  request(
    "rows",
    { at: 1 },
    () => {},
    () => {},
  );
  request(
    "rows",
    { at: 2 },
    () => {},
    () => {},
  );
  assert.equal(model.of("cancel").length, 0);
});

test("a closed view hears nothing more", async () => {
  const costs = [];
  kernel.onCost((io) => costs.push(io));
  const found = outcome(kernel.ask("rows"));
  const states = [];
  kernel.onState((state) => states.push(state));
  const before = model.sent.length;
  kernel.close();
  assert.equal(model.listening(), 0);
  await pass(TIMES.absoluteMs);
  assert.equal(model.sent.length, before);
  assert.deepEqual(found, { value: undefined, card: undefined });
  assert.deepEqual(states, ["connecting"]);
});

test("listeners can be removed", async () => {
  const heard = [];
  const stops = [
    kernel.onState(() => heard.push("state")),
    kernel.onLate(() => heard.push("late")),
    kernel.onCost(() => heard.push("cost")),
  ];
  heard.length = 0;
  for (const stop of stops) stop();
  outcome(kernel.ask("rows"));
  await pass(TIMES.lateMs);
  model.fire("msg:custom", { id: model.of("rows")[0].id, ok: true, result: 1, io: {} });
  assert.deepEqual(heard, []);
});
