"""The line of POSIX shell that a container starts with: it finds a Python, joins the agent's pieces, and becomes it."""

from __future__ import annotations

#: In the order in which they are tried: the newest first, then whatever the image calls its own.
PYTHONS = ("python3.14", "python3.13", "python3.12", "python3.11", "python3", "python")

#: Where things lie in the container.
ROOT = "/phalanx"
#: What Kubernetes shows of a container that has ended.
LAST_WORD = "/dev/termination-log"

#: The agent is for 3.11 and newer; zlib opens it, and ctypes keeps its children.
_FITS = "import sys, zlib, ctypes, socket, fcntl; sys.exit(sys.version_info < (3, 11))"
_VERSION = "import sys; print('%d.%d.%d' % sys.version_info[:3])"


def agent_line(root: str = ROOT, last_word: str = LAST_WORD) -> str:
    """Exit 2 where the image has no Python of at least 3.11, 3 where the work folder takes nothing."""
    return f"""say() {{ printf '%s\\n' "$1" >&2; {{ printf '%s\\n' "$1" >{last_word}; }} 2>/dev/null || :; }}
old=
for python in {" ".join(PYTHONS)}; do
  command -v "$python" >/dev/null 2>&1 || continue
  if "$python" -S -E -c '{_FITS}' >/dev/null 2>&1; then
    mkdir -p {root}/work/home {root}/work/tmp && cat {root}/agent/agent.* >{root}/work/agent.pyz || {{
      say "phalanx: {root}/work takes nothing: is the node's disk full?"; exit 3; }}
    exec "$python" -S -E {root}/work/agent.pyz pod
  fi
  old="$old $python $("$python" -c "{_VERSION}" 2>/dev/null || echo 'that does not start'),"
done
say "phalanx: no Python of at least 3.11 in this image, which the agent needs; it has${{old:- none}} so add one \
(called one of {", ".join(PYTHONS)} on PATH), or render the job without an agent: phalanx render --static"
exit 2"""


def static_line(role: str, config: str | None, root: str = ROOT) -> str:
    """Without an agent: the command that follows, with TF_CONFIG from the file `config` and the pod's own index."""
    folders = 'mkdir -p "$HOME" "$TMPDIR" 2>/dev/null'
    if config is None:
        return f'{folders}\nexec "$@"'
    tail = f'{{\\"type\\":\\"{role}\\",\\"index\\":$PHALANX_POD_INDEX}}}}'
    return f'{folders}\nTF_CONFIG="$(cat {root}/cluster/{config}){tail}"\nexport TF_CONFIG\nexec "$@"'
