// Package docs tests README.md and the pages of docs/ against the host. Each shell block is executed
// with a real `waybill dev`, each JSON and YAML block is parsed and validated against its schema, and
// each link has a target.
//
// A page is written as its reader uses it:
//
//   - The ```sh blocks of a page are one session: later blocks see the variables, files and the host
//     of earlier ones. A failing block fails the test.
//   - A ```console block has commands after `$ `, and their output. `…` stands for any text; alone on
//     a line, for any lines. Ids, times and durations may differ.
//   - `waybill dev` and `waybill serve` continue in the background once they serve, as in a second
//     terminal. A later one on the same page ends the previous one.
//   - The ports of a page (8080, 9090 and so on) are replaced by free ones.
//   - `<!-- not run: REASON -->` before a block explains why the test does not execute it,
//     `<!-- fragment: OF WHAT -->` marks a part of a document.
//
// The shell blocks need bash, curl and jq. Without them these tests are skipped, unless
// WAYBILL_DOCS=required is set.
package docs
