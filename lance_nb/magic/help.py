"""Help texts, all made from the table of verbs."""

from __future__ import annotations

from collections.abc import Collection

from lance_nb.explorer.models import text
from lance_nb.explorer.static_rendering import render_table
from lance_nb.magic.answer import Answer
from lance_nb.magic.registry import GROUPS, find
from lance_nb.magic.verb import MAGIC, Argument, Verb

COMMON = (
    ("{NAME}, $NAME", "fill in a variable: a text, a path, a number or a dataset, as one word"),
    ("'{NAME}', U&'\\007B'", "text as it stands; text with characters by their numbers, as in SQL"),
    ("-o NAME, NAME <<", "bind the value to a variable"),
    ("--json", "the same as JSON"),
    ("--no-display", "show nothing"),
    ("--debug", "show the trace of an error"),
)
IN_TERMINALS = frozenset({"--json", "--debug"})


def help_of_all(prog: str = "%lance", without: Collection[str] = ()) -> Answer:
    """List the verbs, group by group."""
    verbs = [verb for group in GROUPS.values() for verb in group if verb.name not in without]
    rows = [(f"{prog} {verb.name}", verb.help) for verb in verbs]
    rows.append((f"{prog} help VERB", "say more about one verb"))
    data = [{"verb": verb.name, "help": verb.help} for verb in verbs]
    return Answer(data, render_table(prog, (), (("write", "to"), rows)), data)


def help_of(name: str, prog: str = "%lance") -> Answer:
    """Describe one verb: its arguments, options, and an example."""
    verb = find(name)
    lines = [text.line(verb.written(prog)), verb.help]
    common = COMMON if prog == MAGIC else [one for one in COMMON if one[0] in IN_TERMINALS]
    if verb.example:
        lines.append(f"Example: {_example(verb, prog)}")
    rows = [*((_spelled(one), one.help) for one in verb.arguments), *common]
    data = {"verb": verb.name, "usage": verb.usage, "help": verb.help, "example": verb.example}
    picture = render_table(f"{prog} {verb.name}", tuple(lines), (("argument", "what it is"), rows))
    return Answer(data, picture, data)


def _example(verb: Verb, prog: str) -> str:
    if prog == MAGIC or not (verb.needs_dataset or verb.is_text):
        return f"{prog} {verb.example}"
    name, _, words = verb.example.partition(" ")
    quoted = f'"{words}"' if verb.is_text else words
    return f"{prog} {name} photos.lance {quoted}"


def docstring() -> str:
    """Return what ``%lance?`` shows."""
    lines = ["Explore, compare and change Lance datasets. Verbs::", ""]
    lines += [f"    {verb.usage}" for group in GROUPS.values() for verb in group]
    return "\n".join([*lines, "", "%lance help VERB says more about one of them."])


def table_of_verbs() -> str:
    """Return the Markdown table of the README."""
    rows = [
        f"| `{_markdown(verb.usage)}` | {_markdown(verb.help)} |"
        for group in GROUPS.values() for verb in group
    ]  # fmt: skip
    return "\n".join(["| write | to |", "|---|---|", *rows])


def _markdown(words: str) -> str:
    return words.replace("|", "\\|")


def _spelled(one: Argument) -> str:
    return ", ".join(one.flags) if one.is_option else str(one.options.get("metavar", one.flags[0]))
