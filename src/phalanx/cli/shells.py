"""The completion scripts of bash, zsh and fish, from the verbs as data. They ask nobody: no process is started."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from phalanx.cli.arguments import ARGUMENTS, Completes


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Option:
    """One flag under all its names."""

    names: tuple[str, ...]
    summary: str
    #: Whether a value follows.
    valued: bool = False
    #: The values there are; none where they are free.
    choices: tuple[str, ...] = ()
    #: Whether the value is a path.
    path: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Verb:
    """One verb with its flags."""

    name: str
    summary: str
    options: tuple[Option, ...]
    #: The values of its positional word, where they are known.
    choices: tuple[str, ...] = ()

    @property
    def completes(self) -> Completes:
        """What its positional words are."""
        return ARGUMENTS[self.name].completes


_BASH = r"""# Completion of phalanx for bash: source <(phalanx completion bash)
_phalanx_runs() {
    local root=${XDG_STATE_HOME:-} file
    [[ $root == /* ]] || root=$HOME/.local/state
    echo last
    for file in "$root"/phalanx/runs/*.json; do
        file=${file##*/} file=${file%.json}
        [[ $file == *[.*]* ]] || echo "$file"
    done
}
_phalanx_options() {
    case $1 in
@OPTIONS@
    esac
}
_phalanx_valued() {
    case $1 in
@VALUED@
        *) return 1 ;;
    esac
}
_phalanx() {
    local cur=${COMP_WORDS[COMP_CWORD]} verb= option= given=0 only= word known=
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        if [[ -z $verb ]]; then [[ $word == -* ]] || verb=$word
        elif [[ $word == = ]]; then :
        elif [[ -n $option ]]; then option=
        elif [[ $word == -- ]]; then only=1
        elif [[ -z $only && $word == -?* ]]; then if _phalanx_valued "$verb" "$word"; then option=$word; fi
        else
            given=$((given + 1))
            case $verb in @SCRIPTS@) [[ $word == *.yaml || $word == *.yml || $word == *.json ]] || only=1 ;; esac
        fi
    done
    COMPREPLY=()
    [[ -n $option && $cur == = ]] && cur=
    if [[ -z $verb ]]; then known='@VERBS@'
    elif [[ -n $option ]]; then
        case "$verb $option" in
@VALUES@
            @PATHS@) return 0 ;;
            *) compopt +o default +o bashdefault 2>/dev/null; return 0 ;;
        esac
    elif [[ -z $only && $cur == -* ]]; then known=$(_phalanx_options "$verb")
    else
        case $verb in
            @RUNS@) [[ $verb != logs && $verb != stacks && $given -gt 0 ]] || known=$(_phalanx_runs) ;;
@WORDS@
        esac
    fi
    mapfile -t COMPREPLY < <(compgen -W "$known" -- "$cur")
}
complete -o bashdefault -o default -F _phalanx phalanx
"""

_ZSH = r"""#compdef phalanx
# Completion of phalanx for zsh: source <(phalanx completion zsh), or as _phalanx in a folder of $fpath
_phalanx_runs() {
    local root=${XDG_STATE_HOME:-}
    [[ $root == /* ]] || root=$HOME/.local/state
    local -a runs=(last $root/phalanx/runs/*.json(N:t:r))
    compadd -- ${runs:#*.*}
}
_phalanx() {
    local -a verbs=(
@VERBS@
    )
    if (( CURRENT == 2 )); then
        _describe -t verbs verb verbs
        return
    fi
    local verb=$words[2]
    shift words
    (( CURRENT-- ))
    case $verb in
@CASES@
    esac
}
if [[ ${funcstack[1]:-} == _phalanx ]]; then
    _phalanx "$@"
else
    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i }
    compdef _phalanx phalanx
fi
"""

_FISH = r"""# Completion of phalanx for fish: phalanx completion fish | source
function __phalanx_runs
    set -l root $HOME/.local/state
    string match -q '/*' -- "$XDG_STATE_HOME"; and set root $XDG_STATE_HOME
    echo last
    for file in $root/phalanx/runs/*.json
        string replace -r '\.json$' '' -- (string split -r -m1 / -- $file)[-1] | string match -v '*.*'
    end
end
"""


def bash(verbs: Sequence[Verb]) -> str:
    """Files complete by readline's own rules wherever the script knows nothing."""
    pairs = [(option, f'"{verb.name} {name}"') for verb in verbs for option in verb.options for name in option.names]
    return _filled(
        _BASH,
        OPTIONS="\n".join(f"        {verb.name}) echo '{' '.join(_names(verb))}' ;;" for verb in verbs),
        VALUED="\n".join(
            f"""        {verb.name}) [[ ' {" ".join(valued)} ' == *" $2 "* ]] ;;"""
            for verb in verbs
            if (valued := [name for option in verb.options if option.valued for name in option.names])
        ),
        SCRIPTS=_of(verbs, "script"),
        VERBS=" ".join(["--help", "--version", *(verb.name for verb in verbs)]),
        VALUES="\n".join(
            f"            {text}) known='{' '.join(option.choices)}' ;;" for option, text in pairs if option.choices
        ),
        PATHS=" | ".join(text for option, text in pairs if option.path),
        RUNS=_of(verbs, "runs"),
        WORDS="\n".join(
            f"            {verb.name}) known='{' '.join(verb.choices)}' ;;" for verb in verbs if verb.choices
        ),
    )


def zsh(verbs: Sequence[Verb]) -> str:
    """By `_arguments`; works as a file of $fpath and when sourced."""
    return _filled(
        _ZSH,
        VERBS="\n".join(f"        {_quoted(f'{verb.name}:{verb.summary}')}" for verb in verbs),
        CASES="\n".join(_zsh_case(verb) for verb in verbs),
    )


def fish(verbs: Sequence[Verb]) -> str:
    """One `complete` a verb and a flag; files complete unless it says otherwise."""
    lines = []
    for verb in verbs:
        seen = f"complete -c phalanx -n '__fish_seen_subcommand_from {verb.name}'"
        lines.append(f"complete -c phalanx -n __fish_use_subcommand -f -a {verb.name} -d {_fish_quoted(verb.summary)}")
        if verb.completes == "runs":
            lines.append(f"{seen} -f -a '(__phalanx_runs)'")
        elif verb.completes == "nothing":
            lines.append(f"{seen} -f" + (f" -a '{' '.join(verb.choices)}'" if verb.choices else ""))
        for option in verb.options:
            names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
            value = f" -x -a '{' '.join(option.choices)}'" if option.choices else " -x" if option.valued else ""
            value = " -r -F" if option.path else value
            lines.append(f"{seen} {names}{value} -d {_fish_quoted(option.summary)}")
    return _FISH + "\n".join(lines) + "\n"


def _zsh_case(verb: Verb) -> str:
    rest = {
        "script": ["'*:file:_files'"],
        "files": ["'*:file:_files'"],
        "runs": ["'*:run:_phalanx_runs'" if verb.name == "logs" else "'1:run:_phalanx_runs'"],
        "nothing": [f"'1:value:({' '.join(verb.choices)})'"] if verb.choices else [],
    }[verb.completes]
    specs = [_zsh_option(option, name) for option in verb.options for name in option.names]
    alone = " -A '-*'" if verb.completes == "script" else ""
    return " \\\n            ".join([f"        {verb.name}) _arguments -s{alone} :", *specs, *rest]) + " ;;"


def _zsh_option(option: Option, name: str) -> str:
    text = option.summary.replace("[", "(").replace("]", ")").replace(":", "\\:")
    value = f":value:({' '.join(option.choices)})" if option.choices else ":value: " if option.valued else ""
    value = ":file:_files" if option.path else value
    return _quoted(f"{name}{'=' if value and name.startswith('--') else ''}[{text}]{value}")


def _names(verb: Verb) -> list[str]:
    return [name for option in verb.options for name in option.names]


def _of(verbs: Iterable[Verb], completes: Completes) -> str:
    return " | ".join(verb.name for verb in verbs if verb.completes == completes)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _filled(template: str, **parts: str) -> str:
    for name, text in parts.items():
        template = template.replace(f"@{name}@", text)
    return template
