#!/bin/sh
# SPDX-License-Identifier: MIT
# Writes the manual pages, from --help and each command's line of help, and the shells' completions into a folder as /usr has them.
# Arguments: the folder, and the command that calls rtgauge (words of a shell).
set -eu
usr=$1
rtgauge=$2
python=${PYTHON:-python3}

mkdir -p "$usr/share/man/man1"
manual() { # the page's name, the arguments of rtgauge, what it does
	help2man --no-info --no-discard-stderr --section=1 --name="$3" --source=rtgauge --manual='User commands' \
		--version-string="$version" --output="$usr/share/man/man1/$1.1" "$rtgauge $2"
	# help2man takes the words of the command for the page's name.
	sed -i "/^\.TH /s/^\.TH .* \"1\"/.TH $1 \"1\"/; /^\.SH NAME\$/{n;s/^.* \\\\- /$1 \\\\- /}" "$usr/share/man/man1/$1.1"
}
version=$($rtgauge --version | head -n 1)
manual rtgauge '' 'tells whether this Linux machine keeps its deadlines'
commands=$($python -c '
from rtgauge.extension import commands
for name, command in commands().items():
    print(name, command.line)')
echo "$commands" | while read -r command line; do
	manual "rtgauge-$command" "$command" "$(echo "$line" | sed 's/\.$//;s/^./\l&/')" </dev/null
done
for shell in bash zsh fish; do
	case $shell in
	bash) place=share/bash-completion/completions/rtgauge ;;
	zsh) place=share/zsh/vendor-completions/_rtgauge ;;
	fish) place=share/fish/vendor_completions.d/rtgauge.fish ;;
	esac
	mkdir -p "$usr/$(dirname "$place")"
	_RTGAUGE_COMPLETE="source_$shell" $rtgauge | sed '/./,$!d' >"$usr/$place"
done
