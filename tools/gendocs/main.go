// Command gendocs renders the pages of docs/ that follow from the code. It is
// run from the top of the repository: `make gen`.
package main

import (
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"

	"waybill.dev/waybill/protocol/fault"
)

func main() {
	if err := os.WriteFile("docs/errors.md", []byte(errorCodes()), 0o644); err != nil {
		log.Fatal(err)
	}
}

const errorsHead = "# Errors\n\n" +
	"Generated from `protocol/fault/table.go` by `make gen`; do not edit.\n\n" +
	"Every answer that is not 2xx is `{\"error\": code, \"message\": sentence, \"details\"?: object}`; over gRPC the same document\n" +
	"is the only detail of the status. Switch on the code; the sentence is for people. A code without an HTTP status stands in\n" +
	"the `error` of a run or node only. \"Retry\" says that the same request may succeed later; wait as long as a\n" +
	"`Retry-After` asks.\n\n" +
	"| code | HTTP | gRPC | retry | meaning |\n|---|---|---|---|---|\n"

// errorCodes is the page of all codes.
func errorCodes() string {
	var b strings.Builder
	b.WriteString(errorsHead)
	for _, c := range fault.Codes() {
		r := fault.Lookup(c)
		http, grpc := "", ""
		if r.HTTP != 0 {
			http, grpc = strconv.Itoa(r.HTTP), codes.Code(r.GRPC).String()
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", c, http, grpc, yes(r.Retryable), r.Meaning)
	}
	return b.String()
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return ""
}
