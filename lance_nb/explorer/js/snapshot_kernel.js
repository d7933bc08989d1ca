// A kernel that is a recording: the model of a widget over a snapshot (see html_export.py).

const NEEDED =
  "This page is a snapshot: only what was recorded can be shown. " +
  "Open the dataset with lance_nb.explore to ask for more.";

/** @param {Lnb.Json} data see snapshot.py @returns {Lnb.Model} what a widget gets as its model */
export function snapshotModel(data) {
  /** @type {Map<string, ((...values: Lnb.Json[]) => void)[]>} */
  const heard = new Map();
  /** @type {Record<string, Lnb.Json>} */
  const state = { screen: revive(data.screens[0]), height: data.height };
  /** @param {string} name @param {...Lnb.Json} values */
  const fire = (name, ...values) =>
    (heard.get(name) ?? []).forEach((listener) => listener(...values));
  /** @param {string | null | undefined} branch @param {number} version */
  const placeName = (branch, version) =>
    data.screens.find(
      (/** @type {Lnb.Json} */ entry) =>
        (entry.branch ?? null) === (branch ?? null) && entry.version === version,
    );

  /** @param {Lnb.Args} to */
  function travel({ ref, branch, version }) {
    const words = ref === undefined ? "" : String(ref).replace(/^tag:/, "");
    const answer =
      ref === undefined
        ? placeName(branch, version)
        : (data.screens.find(
            (/** @type {Lnb.Screen} */ candidate) =>
              candidate.label === words ||
              ((candidate.branch ?? null) === (state.screen.branch ?? null) &&
                String(candidate.version) === words),
          ) ?? tagged(words));
    if (!answer) {
      const refName = ref ?? `${branch ?? "main"}:${version}`;
      const recorded = data.screens
        .slice(0, 12)
        .map((/** @type {Lnb.Json} */ screen) => screen.label);
      return failed(`${refName} is not in this snapshot. It has ${recorded.join(", ")}.`);
    }
    state.screen = revive(answer);
    fire("change:screen");
    return { result: { label: answer.label } };
  }

  /** @param {string} name */
  function tagged(name) {
    const tag = state.screen.timeline?.tags?.find(
      (/** @type {Lnb.Json} */ tag) => tag.name === name,
    );
    return tag && placeName(tag.branch, tag.version);
  }

  /** What tells requests of a type apart, beside the version. */
  /** @type {Record<string, (args: Lnb.Args) => unknown[]>} */
  const apart = {
    "storage.map": ({ first, stop }) => (first === 0 && stop >= 2 ** 52 ? [] : ["part"]),
    "storage.fragment": ({ fragment }) => [fragment],
    "refs.list": ({ kind, first }) => (first ? [kind, first] : [kind]),
    "refs.show": ({ kind, name }) => [kind, name ?? "None"],
  };

  /** @type {Record<string, (args: Lnb.Args) => Lnb.Json>} */
  const own = {
    ready: () => ({ result: {} }),
    travel,
    select: () => ({ result: { num_rows: 0 } }),
    news: () => ({ result: { added: 0, latest: state.screen.version, gone: false, mark: "" } }),
    refs: ({ text }) => ({
      result: {
        choices: data.choices
          .filter((/** @type {Lnb.Json} */ version) =>
            JSON.stringify(version).toLowerCase().includes(text.toLowerCase()),
          )
          .slice(0, 20),
      },
    }),
    versions: ({ branch, numbers }) => ({
      result: {
        branch,
        details: numbers
          .map((/** @type {Lnb.Json} */ number) => data.bars[branch ?? ""]?.[number])
          .filter(Boolean),
      },
    }),
    "changes.counts": ({ a, b }) =>
      a.version === b.version - 1 && (a.branch ?? null) === (b.branch ?? null)
        ? recorded(["changes.counts", b.branch ?? "", b.version])
        : null,
    "refs.heads": ({ names }) => ({
      result: {
        heads: (recorded(["refs.heads"])?.result.heads ?? []).filter(
          (/** @type {Lnb.Json} */ table) => names.includes(table.name),
        ),
      },
    }),
    "rows.profile": ({ branch, version, first, count, filter }) => {
      const profileAnswer = filter ? null : recorded(["rows.profile", branch ?? "", version]);
      return (
        profileAnswer && {
          result: {
            profiles: profileAnswer.result.profiles.filter(
              (/** @type {Lnb.Json} */ profile) =>
                profile.column >= first && profile.column < first + count,
            ),
          },
        }
      );
    },
  };

  /** @param {unknown[]} parts */
  function recorded(parts) {
    const answer = data.answers[parts.join("|")];
    return answer ? { result: answer.result, buffers: answer.buffers.map(revive) } : null;
  }

  /** @param {Lnb.Message} message */
  function answer({ type, args }) {
    if (own[type]) return own[type](args) ?? failed(NEEDED);
    const where = args.version === undefined ? [] : [args.branch ?? "", args.version];
    return recorded([type, ...where, ...(apart[type]?.(args) ?? [])]) ?? failed(NEEDED);
  }

  return {
    get: (name) => state[name],
    on: (name, listener) => heard.set(name, [...(heard.get(name) ?? []), listener]),
    off: (name, listener) =>
      heard.set(
        name,
        (heard.get(name) ?? []).filter((other) => other !== listener),
      ),
    send(content) {
      const { result, buffers, error } = answer(content);
      queueMicrotask(() =>
        fire(
          "msg:custom",
          error ? { id: content.id, ok: false, error } : { id: content.id, ok: true, result },
          buffers ?? [],
        ),
      );
    },
  };
}

/** @param {string} message */
function failed(message) {
  return {
    error: {
      title: "Not in this snapshot",
      message,
      where: "",
      hint: "Run lance_nb.explore in a notebook.",
      kind: "Snapshot",
    },
  };
}

/** @param {Lnb.Json} value @returns {Lnb.Json} */
export function revive(value) {
  if (Array.isArray(value)) return value.map(revive);
  if (!value || typeof value !== "object") return value;
  if ("$bytes" in value)
    return new DataView(Uint8Array.from(atob(value.$bytes), (sign) => sign.charCodeAt(0)).buffer);
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, revive(inner)]));
}
