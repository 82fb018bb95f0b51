// Package docs holds the pages of README.md and docs/ to what the host does: each
// shell block is executed against a real `waybill dev`, each JSON and YAML block is
// parsed and held against the schema of what it is, each link leads somewhere.
//
// A page is written as its reader uses it:
//
//   - The ```sh blocks of a page are one session: variables, files and the host that
//     a block has started are there for the next one. A block that fails fails the test.
//   - A ```console block has the commands behind `$ ` and what they print. `…` stands for
//     any text, alone on a line for any lines. Ids, times and durations may differ.
//   - `waybill dev` and `waybill serve` go on in the background once they serve, as in a
//     terminal of their own; each further one of the page ends the one before.
//   - The ports of the page (8080, 9090 and so on) are free ones of the test's.
//   - `<!-- not run: REASON -->` before a block says why it is not executed here,
//     `<!-- fragment: OF WHAT -->` that a block is part of a document.
//
// The shell blocks need bash, curl and jq. Without them these tests are skipped, which
// WAYBILL_DOCS=required forbids.
package docs
