"""How the command is asked: a parser that says what was meant, options from warpwright.toml, and completion for shells."""

from __future__ import annotations

import argparse
import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from warpwright.errors import UsageError

FILE = "warpwright.toml"

SHELLS = ("bash", "zsh", "fish")


class Parser(argparse.ArgumentParser):
    """Ends wrong use with the nearest word that would have been right."""

    def error(self, message: str) -> NoReturn:
        """Print usage, what is wrong and what may have been meant, and exit with 2."""
        meant = self._meant(message)
        super().error(f"{message}; did you mean {meant}?" if meant else message)

    def _meant(self, message: str) -> str:
        choice = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
        if choice:
            return next(iter(difflib.get_close_matches(choice[1], re.findall(r"[\w./-]+", choice[2]), 1)), "")
        unknown = re.search(r"unrecognized arguments: (--[\w-]+)", message)
        known = [option for parser in (self, *verbs(self).values()) for option in parser._option_string_actions]
        return next(iter(difflib.get_close_matches(unknown[1], known, 1)), "") if unknown else ""


def verbs(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of a parser's verbs."""
    inner = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return {name: one for action in inner for name, one in action.choices.items()}


# --- warpwright.toml -------------------------------------------------------------------------------------------------------------------


def file_above(folder: Path) -> Path | None:
    """Return the file warpwright.toml of a folder, or of the nearest folder above it."""
    return next((one for one in (place / FILE for place in (folder, *folder.parents)) if one.is_file()), None)


def with_defaults(top: argparse.ArgumentParser, arguments: Sequence[str], folder: Path) -> list[str]:
    """Return a command's arguments with those that the file warpwright.toml of `folder`, or of the nearest folder above it, has for its verb.

    Options at the top of the file hold for every verb that has them, those of a table [VERB] for that verb. What is given on the command line comes
    later, and counts. Raise UsageError for a file with anything else.
    """
    file = file_above(folder)
    known = verbs(top)
    if file is None or not arguments or arguments[0] not in known:
        return list(arguments)
    try:
        settings = tomllib.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise UsageError(f"expected TOML in {file}: {error}", "see docs/cli.md") from error
    tables = {name: table for name, table in settings.items() if isinstance(table, Mapping)}
    shared = {name: value for name, value in settings.items() if not isinstance(value, Mapping)}
    for name, table in tables.items():
        if name not in known:
            raise UsageError(f"expected a table of a verb in {file}, saw [{name}]", _nearest(name, known))
        _check(table, [known[name]], f"[{name}] in {file}")
    _check(shared, list(known.values()), str(file))
    parser = known[arguments[0]]
    merged = {name: value for name, value in shared.items() if _action(parser, name) is not None} | dict(tables.get(arguments[0], {}))
    return [arguments[0], *(word for name, value in merged.items() for word in _as_words(parser, name, value)), *arguments[1:]]


def _check(table: Mapping[str, Any], parsers: Sequence[argparse.ArgumentParser], where: str) -> None:
    """Raise UsageError for an option that none of the parsers has."""
    for name in table:
        if not any(_action(parser, name) for parser in parsers):
            options = {option[2:]: option for parser in parsers for option in parser._option_string_actions if option.startswith("--")}
            raise UsageError(f"expected an option in {where}, saw {name!r}", _nearest(name, options))


def _as_words(parser: argparse.ArgumentParser, name: str, value: Any) -> list[str]:
    """Return an option as it stands on a command line."""
    action = _action(parser, name)
    assert action is not None
    option = action.option_strings[-1]
    if action.nargs == 0:
        return [option] if value else []
    return [word for one in (value if isinstance(value, list) else [value]) for word in (option, str(one))]


def _action(parser: argparse.ArgumentParser, name: str) -> argparse.Action | None:
    return next((one for one in parser._actions if one.option_strings and one.dest == name.replace("-", "_")), None)


def _nearest(name: str, known: Mapping[str, Any]) -> str:
    meant = difflib.get_close_matches(name, known, 1)
    return f"did you mean {meant[0]}?" if meant else f"known: {', '.join(sorted(known))}"


# --- completion ------------------------------------------------------------------------------------------------------------------------


def completion(top: argparse.ArgumentParser, shell: str) -> str:
    """Return the text that a shell reads to complete verbs, options and their choices."""
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](top)


def _words(parser: argparse.ArgumentParser) -> list[str]:
    return [*verbs(parser), *(option for option in parser._option_string_actions if option.startswith("--"))]


def _choices(parser: argparse.ArgumentParser) -> Iterator[tuple[str, list[str]]]:
    for action in parser._actions:
        for option in action.option_strings:
            if action.choices and option.startswith("--"):
                yield option, [str(choice) for choice in action.choices]


def _bash(top: argparse.ArgumentParser) -> str:
    lines = ["_warpwright() {", '    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" verb="${COMP_WORDS[1]}"']
    lines += ['    if [ "$COMP_CWORD" -eq 1 ]; then', f'        COMPREPLY=($(compgen -W "{" ".join(_words(top))}" -- "$word")); return', "    fi"]
    lines += ['    case "$verb $before" in']
    for name, parser in verbs(top).items():
        for option, known in _choices(parser):
            lines.append(f'        "{name} {option}") COMPREPLY=($(compgen -W "{" ".join(known)}" -- "$word")); return ;;')
    lines += ["    esac", '    case "$verb" in']
    lines += [f'        {name}) COMPREPLY=($(compgen -W "{" ".join(_words(parser))}" -- "$word")) ;;' for name, parser in verbs(top).items()]
    lines += ["    esac", '    [[ "$word" == -* ]] || COMPREPLY+=($(compgen -f -- "$word"))', "}", "complete -o filenames -F _warpwright warpwright"]
    return "\n".join(lines) + "\n"


def _zsh(top: argparse.ArgumentParser) -> str:
    return "autoload -U +X bashcompinit && bashcompinit\n" + _bash(top)


def _fish(top: argparse.ArgumentParser) -> str:
    lines = []
    for name, parser in verbs(top).items():
        about = (parser.description or "").replace("'", "")
        lines.append(f"complete -c warpwright -n __fish_use_subcommand -a {name} -d '{about}'")
        choices = dict(_choices(parser))
        for action in parser._actions:
            for option in (one for one in action.option_strings if one.startswith("--")):
                told = f" -x -a '{' '.join(choices[option])}'" if option in choices else ""
                lines.append(f"complete -c warpwright -n '__fish_seen_subcommand_from {name}' -l {option[2:]}{told}")
    return "\n".join(lines) + "\n"
