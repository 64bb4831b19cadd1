# shellcheck shell=bash
# For scripts that start a program that hangs: `source ci/await-hang.bash`.

# Prints a line for each thread that sleeps: its number, and how often it went to sleep so far.
# Fails if one is awake.
sleepers() { # process
    local task stat key value
    for task in "/proc/$1/task"/*; do
        stat=$(<"$task/stat")
        stat=${stat##*) } # the name, in brackets, may hold anything
        [[ $stat == S* ]] || return 1
        while read -r key value; do
            [[ $key != voluntary_ctxt_switches: ]] || printf '%s %s\n' "${task##*/}" "$value"
        done <"$task/status"
    done
}

# Returns when all threads are blocked: asleep in two looks in a row, and not awake in between.
await_hang() { # process, number of threads
    # Not since the beginning: to build can take longer than that.
    local before='' now since=$SECONDS
    while ((SECONDS - since < 120)); do
        kill -0 "$1" 2>/dev/null || {
            echo "the program ended; it should hang" >&2
            return 1
        }
        now=$(sleepers "$1" 2>/dev/null) || now=''
        if [[ -n $now && $now == "$before" && $(wc -l <<<"$now") -eq $2 ]]; then
            return
        fi
        before=$now
    done
    echo "the program did not come to rest within two minutes" >&2
    return 1
}
