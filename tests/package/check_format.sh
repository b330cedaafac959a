#!/bin/sh
# check_format.sh SOURCE: every C and C++ file that git knows is as clang-format-19 has it. Status 77, with the reason, where
# that cannot be told: other versions format differently.
cd "$1" || exit 1
skip() {
  echo "skipped: $1"
  exit 77
}
command -v clang-format-19 > /dev/null || skip "there is no clang-format-19 (Debian: clang-format-19)"
command -v git > /dev/null || skip "there is no git"
top=$(git rev-parse --show-prefix 2> /dev/null) || skip "this source tree is not git's, so which files belong to it is not known"
[ -z "$top" ] || skip "this source tree lies in somebody else's git repository"
[ -n "$(git ls-files '*.cpp')" ] || { echo "git names no file"; exit 1; }
# A file that was deleted, which is not committed yet, is no file to check.
git ls-files -z '*.c' '*.h' '*.cpp' '*.hpp' |
  xargs -0 sh -c 'for file; do [ ! -e "$file" ] || printf "%s\\0" "$file"; done' sh |
  xargs -0 clang-format-19 --dry-run -Werror || exit 1
