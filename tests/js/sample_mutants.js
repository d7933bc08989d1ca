// Change one expression at a time and see whether the unit tests fail:
// `node sample_mutants.js COUNT SEED [FILES]`
//
// Mutants are sampled from all modules that a unit test imports, directly or by another module. The
// original is put back after each; a run that is stopped leaves a copy in the temporary folder.

import { execFileSync } from "node:child_process";
import {
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = dirname(fileURLToPath(import.meta.url));
const EXPLORER = resolve(HERE, "../../lance_nb/explorer");
const [count = "100", seed = "1", only = ""] = process.argv.slice(2);

/** Rules: a pattern and what comes in its place. */
const RULES = [
  [/ \+ /g, " - "],
  [/ - /g, " + "],
  [/ \* /g, " / "],
  [/ \/ /g, " * "],
  [/ < /g, " <= "],
  [/ <= /g, " < "],
  [/ > /g, " >= "],
  [/ >= /g, " > "],
  [/ === /g, " !== "],
  [/ !== /g, " === "],
  [/ && /g, " || "],
  [/ \|\| /g, " && "],
  [/ \?\? /g, " && "],
  [/ \+= /g, " -= "],
  [/\btrue\b/g, "false"],
  [/\bfalse\b/g, "true"],
  [/\bMath\.max\b/g, "Math.min"],
  [/\bMath\.min\b/g, "Math.max"],
  [/\bMath\.floor\b/g, "Math.ceil"],
  [/([ ([])!(?=[a-z])/g, "$1"],
  [/\b([0-9]+)\b(?!")/g, (digits) => String(Number(digits) + 1)],
  [/^(\s*)if \((?=.*\) return;$)/g, "$1if (false && "],
  [/^(\s*)([a-zA-Z.?]+\([^{]*\);)$/g, "$1"],
  [/\.filter\(Boolean\)/g, ""],
];

function random(state) {
  let value = state;
  return () => {
    value = (value + 0x6d2b79f5) | 0;
    let mixed = Math.imul(value ^ (value >>> 15), 1 | value);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/** Modules that are imported by these files, directly or not. */
function reached(files) {
  const found = new Set();
  const todo = [...files];
  while (todo.length) {
    const file = todo.pop();
    for (const [, path] of readFileSync(file, "utf8").matchAll(/from "(\.[^"]+)"/g)) {
      const target = resolve(dirname(file), path);
      if (!target.startsWith(EXPLORER) || found.has(target)) continue;
      found.add(target);
      todo.push(target);
    }
  }
  return [...found].sort();
}

/** Texts and comments as blanks of the same length, so that nothing in them is changed. */
function code(line) {
  return line.replace(/"(?:[^"\\]|\\.)*"|`[^`]*`|\/\*.*?\*\/|\/\/.*$/g, (text) =>
    "\u0000".repeat(text.length),
  );
}

function mutantsOf(file) {
  const lines = readFileSync(file, "utf8").split("\n");
  const mutants = [];
  let comment = false;
  lines.forEach((line, at) => {
    if (/^\s*\/\*/.test(line)) comment = true;
    const skipped = comment || /^\s*(\/\/|import |\* )/.test(line);
    if (/\*\//.test(line)) comment = false;
    if (skipped) return;
    const bare = code(line);
    for (const [pattern, replacement] of RULES) {
      for (const match of bare.matchAll(pattern)) {
        const put = match[0].replace(new RegExp(pattern.source), replacement);
        const text =
          line.slice(0, match.index) +
          (put.includes("\u0000") ? "" : put) +
          line.slice(match.index + match[0].length);
        if (text !== line) mutants.push({ file, at, line, text });
      }
    }
  });
  return mutants;
}

const tests = readdirSync(HERE).filter((name) => name.endsWith(".test.js"));
const modules = reached(tests.map((name) => join(HERE, name))).filter((file) =>
  file.includes(only),
);
const reachedBy = tests.map((name) => [name, new Set(reached([join(HERE, name)]))]);
const all = modules.flatMap(mutantsOf);
const draw = random(Number(seed));
const folder = mkdtempSync(join(tmpdir(), "mutants-"));
cpSync(EXPLORER, join(folder, "lance_nb/explorer"), {
  recursive: true,
  filter: (path) => !/\.py$|__pycache__/.test(path),
});
cpSync(HERE, join(folder, "tests/js"), {
  recursive: true,
  filter: (path) => !path.includes("node_modules"),
});
symlinkSync(join(HERE, "node_modules"), join(folder, "tests/js/node_modules"));

const run = (...args) =>
  execFileSync(process.execPath, args, {
    cwd: join(folder, "tests/js"),
    stdio: "pipe",
    timeout: 60000,
  });
// A test that fails by itself, or tools that are not installed, would kill every mutant.
for (const name of tests) run(name);
let killed = 0;
let tried = 0;
const byFile = new Map();
while (tried < Number(count) && all.length) {
  const [mutant] = all.splice(Math.floor(draw() * all.length), 1);
  const path = mutant.file.slice(EXPLORER.length + 1);
  const target = join(folder, "lance_nb/explorer", path);
  const lines = readFileSync(mutant.file, "utf8").split("\n");
  lines[mutant.at] = mutant.text;
  writeFileSync(target, lines.join("\n"));
  let dead = false;
  try {
    run("--check", "--experimental-default-type=module", target);
  } catch {
    cpSync(mutant.file, target);
    continue; // no program: not a mutant
  }
  try {
    for (const [name, set] of reachedBy) if (set.has(mutant.file)) run(name);
  } catch {
    dead = true;
  }
  cpSync(mutant.file, target);
  tried += 1;
  killed += Number(dead);
  const counts = byFile.get(path) ?? [0, 0];
  byFile.set(path, [counts[0] + Number(dead), counts[1] + 1]);
  if (tried % 10 === 0) console.log(`${killed} of ${tried}`);
  if (!dead)
    console.log(
      `survived ${path}:${mutant.at + 1}\n  - ${mutant.line.trim()}\n  + ${mutant.text.trim()}`,
    );
}
rmSync(folder, { recursive: true });
console.log(`${killed} of ${tried} mutants killed, from ${modules.length} modules`);
