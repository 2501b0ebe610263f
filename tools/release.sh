#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes a release in dist/ from a checkout without changes: the wheel and the source distribution (`make wheel` made them),
# the Debian packages, an SBOM beside each, and SHA256SUMS. Then it checks them, and says what a person does to publish them.
# Arguments: the releases of Debian and Ubuntu.
set -eu
cd "$(dirname "$0")/.."
python=.venv/bin/python
[ -z "$(git status --porcelain)" ] || { echo 'The checkout has changes; make a release from a clean clone.' >&2; exit 1; }
for suite; do
	sh tools/part.sh "Debian packages for $suite" sh tools/deb.sh "$suite" dist
done
echo '--- SBOMs and checksums'
$python tools/sbom.py dist
rm -f dist/libraries-*.txt
(cd dist && sha256sum -- *.whl *.tar.gz *.deb *.cdx.json >SHA256SUMS)
echo '--- check'
$python -m twine check --strict dist/*.whl dist/*.tar.gz
sh tools/part.sh 'install in clean roots' $python -m pytest tests/roots
version=$(basename dist/rtgauge-*.tar.gz .tar.gz | sed 's/^rtgauge-//')
dated=$(grep --extended-regexp --only-matching "^## \\[$version\\] - [0-9]{4}-[0-9]{2}-[0-9]{2}$" CHANGELOG.md || true)
[ -n "$dated" ] || echo "CHANGELOG.md has no date for $version. Write it there, commit that, and make the release again." >&2
cat <<END

dist/ holds release $version; its checksums are in dist/SHA256SUMS. To publish it:
    1. Make it in a second clean clone, and compare: python tools/compare_releases.py dist THE-OTHER-CLONE/dist
    2. git tag --sign v$version && git push origin v$version
    3. gpg --armor --detach-sign dist/SHA256SUMS
    4. .venv/bin/python -m twine upload dist/*.whl dist/*.tar.gz
    5. Attach everything in dist/ to the tag's page; put the .deb files into the archive for their release, if there is one.
END
