#!/bin/sh
# A tour of the command line over the sample handbook: index it, four searches, the measured table. `make demo` runs it.
set -eu
cd "$(dirname "$0")/.."
index=build/demo

# Echo a command, run it, and insist on the exit code that the tour is about.
run() {
    expected=$1
    shift
    printf '\n$'
    for word in "$@"; do
        case $word in
            *[!A-Za-z0-9_./=-]*) printf ' "%s"' "$word" ;;
            *) printf ' %s' "$word" ;;
        esac
    done
    printf '\n'
    code=0
    "$@" || code=$?
    if [ "$code" -ne "$expected" ]; then
        echo "the demo expected exit code $expected and got $code" >&2
        exit 1
    fi
}
say() { printf '\n-- %s\n' "$1"; }

rm -rf "$index"
say "A folder becomes an index."
run 0 wellhead index examples/handbook/docs --into "$index"

say "A paraphrase that shares no word with its answer. The default cut is careful and would refuse it; --cut off shows what is nearest."
run 0 wellhead search "Is it cheaper for nonprofit organizations?" -k 1 --cut off --explain --index "$index"

say "An identifier, typed exactly."
run 0 wellhead search "default value of endpoint_disable_after" -k 3 --index "$index"

say "A question that the handbook cannot answer: no passages, exit code 3, and the reason."
run 3 wellhead search "How long should sourdough rise before baking?" -k 3 --index "$index"

say "A filtered search: only what belongs to one tenant is ranked at all."
run 0 wellhead search "How many days do we have to ask for a refund?" -k 3 --filter tenant=globex --index "$index"

say "The 40 questions (32 with an answer, 8 without), one row a pipeline."
run 0 wellhead eval examples/handbook

say "Yours: .venv/bin/wellhead index YOUR_FOLDER, then .venv/bin/wellhead search 'your question'"
