// The model over a server: what is sent, what is heard, and when it stops.

import assert from "node:assert/strict";
import { test } from "node:test";
import { httpModel } from "../../lance_nb/explorer/js/http_model.js";
import { settled } from "./fake_context.js";

const GIVEN = { session: "s1", token: "t1", state: { screen: { version: 3 }, height: 500 } };

/** A server whose answers to /events come by hand. */
function fakeServer() {
  const asked = [];
  const waiting = [];
  return {
    asked,
    load(path, how) {
      asked.push([path, how]);
      if (path === "/message") return Promise.resolve({ ok: true, status: 200 });
      return new Promise((resolve, reject) => waiting.push({ resolve, reject }));
    },
    async say(events, status = 200) {
      const { resolve } = waiting.shift();
      resolve({ ok: status === 200, status, json: () => Promise.resolve(events) });
      await settled();
      await settled();
    },
    count: (path) => asked.filter(([one]) => one === path).length,
  };
}

test("messages are posted with the token, answers and traits are heard in order", async () => {
  const server = fakeServer();
  const model = httpModel(GIVEN, server.load);
  assert.equal(model.get("screen").version, 3);
  const heard = [];
  const listener = (content, buffers) =>
    heard.push([content.id, buffers.map((one) => one.getUint8(0))]);
  model.on("msg:custom", listener);
  model.on("change:screen", () => heard.push(model.get("screen").version));
  model.send({ id: "1", type: "rows" });
  const [path, { method, headers, body }] = server.asked.at(-1);
  assert.deepEqual([path, method, JSON.parse(body).id], ["/message", "POST", "1"]);
  assert.deepEqual(headers, { "X-Lance-Token": "t1", "X-Lance-Session": "s1" });
  await server.say([
    { trait: "screen", value: { version: 2 } },
    { content: { id: "1" }, buffers: [{ $bytes: "Kg==" }] },
  ]);
  assert.deepEqual(heard, [2, ["1", [42]]]);
  assert.equal(server.count("/events"), 2); // it waits for more
  model.off("msg:custom", listener);
  await server.say([{ content: { id: "2" }, buffers: [] }]);
  assert.equal(heard.length, 2);
  model.close();
  await server.say([]);
  assert.equal(server.count("/events"), 3);
});

test("a page whose session was closed asks no more", async () => {
  const server = fakeServer();
  httpModel(GIVEN, server.load);
  await server.say([], 404);
  assert.equal(server.count("/events"), 1);
});
