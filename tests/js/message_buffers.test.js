// Buffers that are lost on the way are asked for as text.

import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { Kernel } from "../../lance_nb/explorer/js/kernel.js";
import { bytesOfText, isWhole } from "../../lance_nb/explorer/js/message_buffers.js";

beforeEach(() => mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"] }));
afterEach(() => mock.timers.reset());

/** A model whose messages come and go by hand. */
function fakeModel() {
  const sent = [];
  let hear = () => {};
  return {
    sent,
    of: (type) => sent.filter((message) => message.type === type),
    on(name, listener) {
      if (name === "msg:custom") hear = listener;
    },
    off() {},
    send: (content) => sent.push(content),
    answer: (message, buffers, more = {}) =>
      hear({ id: message.id, ok: true, result: { rows: 1 }, ...more }, buffers),
  };
}

test("bytes come back from text, and what is missing is seen", () => {
  const view = bytesOfText(Buffer.from([0, 1, 255]).toString("base64"));
  assert.deepEqual([...new Uint8Array(view.buffer)], [0, 1, 255]);
  assert.equal(isWhole([view], 1), true);
  assert.equal(isWhole(undefined, undefined), true);
  for (const lost of [undefined, [], [null], [{}], ["AAAA"]]) assert.equal(isWhole(lost, 1), false);
});

test("a read whose buffers were lost is sent again, after the kernel was told", async () => {
  const model = fakeModel();
  const kernel = new Kernel(model);
  const asked = kernel.ask("rows", { offset: 3 });
  model.answer(model.of("rows")[0], [], { num_buffers: 1 });
  assert.deepEqual(
    model.sent.slice(-2).map(({ type, args }) => [type, args]),
    [
      ["buffers", { as_text: true }],
      ["rows", { offset: 3 }],
    ],
  );
  model.answer(model.of("rows")[1], [], { num_buffers: 1, base64: ["Kg=="] });
  const { result, buffers } = await asked;
  assert.deepEqual(result, { rows: 1 });
  assert.equal(buffers[0].getUint8(0), 42);
  kernel.close();
});

test("long work is sent again, too, and nothing more than once", async () => {
  const model = fakeModel();
  const kernel = new Kernel(model);
  const asked = kernel.ask("changes.rows");
  model.answer(model.of("changes.rows")[0], [null], { num_buffers: 1 });
  assert.equal(model.of("changes.rows").length, 2);
  model.answer(model.of("changes.rows")[1], [], { num_buffers: 1 });
  assert.deepEqual((await asked).buffers, []);
  assert.equal(model.of("changes.rows").length, 2);
  kernel.close();
});
