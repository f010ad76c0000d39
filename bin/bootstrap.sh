# Sets up the virtual environment of this checkout. Sourced by the commands beside it, which set "root" first.
# Prints on stderr only: standard output belongs to the command.

venv="$root/.venv"

say() { printf 'headwater: %s\n' "$*" >&2; }

die() {
    say "$@"
    exit 1
}

# What the environment depends on: the declared dependencies, and where the checkout is (scripts name their interpreter).
fingerprint() {
    local digest
    digest=$({ sha256sum || shasum -a 256 || cksum; } <"$root/pyproject.toml" 2>/dev/null)
    printf '%s %s' "${digest%% *}" "$root"
}

stamped() { # stamped NAME KEY: was this step done for this fingerprint?
    [[ -f "$venv/.headwater-$1" && "$(<"$venv/.headwater-$1")" == "$2" ]]
}

stamp() { printf '%s' "$2" >"$venv/.headwater-$1"; }

installed() { [[ -x "$venv/bin/python" ]] && stamped "$1" "$2"; }

warm() { [[ ! -f "$root/src/headwater/runtime/warmup.py" ]] || stamped warm "$1"; }

suitable() { "$@" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

find_python() {
    local candidate
    for candidate in ${HEADWATER_PYTHON:+"$HEADWATER_PYTHON"} python3 python3.14 python3.13 python3.12 python3.11 python; do
        if suitable "$candidate"; then
            printf '%s' "$candidate"
            return
        fi
        [[ -z "${HEADWATER_PYTHON:-}" ]] || break
    done
    die "could not find Python 3.11 or newer
  hint: Install it, or name one: HEADWATER_PYTHON=/path/to/python3"
}

# Takes the lock on descriptor 9; it is held until the descriptor closes. Python's flock, as not every system has flock(1).
take_lock() {
    local lock='import fcntl, sys; fcntl.flock(9, fcntl.LOCK_EX | (fcntl.LOCK_NB if sys.argv[1:] else 0))'
    "$1" -c "$lock" now 2>/dev/null && return
    say "waiting for another command that sets up the same checkout"
    "$1" -c "$lock"
}

moved() { # was this environment made for a checkout at another place?
    local name
    for name in run dev; do
        [[ -f "$venv/.headwater-$name" ]] || continue
        [[ "$(<"$venv/.headwater-$name")" == *" $root" ]] || return 0
    done
    return 1
}

create_venv() {
    if ! moved && suitable "$venv/bin/python" && "$venv/bin/python" -c 'import pip' 2>/dev/null; then
        return
    fi
    "$1" -m venv --clear "$venv" || die "could not create a virtual environment in $venv
  hint: On Debian and Ubuntu the module comes in a package of its own: apt install python3-venv"
}

install_package() {
    local target=.
    [[ "$1" == run ]] || target=".[$1]"
    "$venv/bin/python" -m pip install -qq --disable-pip-version-check --no-input --editable "$target" ||
        die "could not install the dependencies (the reason is above)"
}

# Spark runs on Java; a machine that has none, or only an old one, gets one as a Python package.
provide_java() {
    local search='from headwater.backends.spark.java import find_java; find_java()'
    if ! "$venv/bin/python" -c "$search" 2>/dev/null; then
        say "installing Java, once: this machine has none that is new enough for Spark"
        (install_package java) || say "going on without Java; what needs Spark will ask for it"
    fi
    stamp java "$1"
}

warm_up() {
    "$venv/bin/python" -m headwater.runtime.warmup >/dev/null 2>&1 ||
        say "could not compile the kernels ahead; they compile when first used"
    # Spark starts sooner with an archive of its classes; where Java cannot make one, it starts without.
    "$venv/bin/python" -m headwater.backends.spark.class_archive >/dev/null 2>&1 || true
    stamp warm "$1"
}

set_up() { # set_up run|dev KEY, under the lock
    local python
    python=$(find_python) || exit 1
    take_lock "$python" || die "could not lock $root/.venv.lock"
    if ! installed "$1" "$2"; then
        say "setting up, once (virtual environment, dependencies, compiled kernels): one or two minutes"
        cd "$root" || exit 1
        create_venv "$python"
        install_package "$1"
        [[ "$1" == run ]] || stamp run "$2"
        stamp "$1" "$2"
    elif ! warm "$2"; then
        say "compiling kernels and preparing Spark, once"
    fi
    stamped java "$2" || provide_java "$2"
    warm "$2" || warm_up "$2"
}

bootstrap() { # bootstrap run|dev
    local key
    key=$(fingerprint)
    if installed "$1" "$key" && stamped java "$key" && warm "$key"; then
        return
    fi
    (set_up "$1" "$key") 9>"$root/.venv.lock" </dev/null >&2 || exit 1
}
