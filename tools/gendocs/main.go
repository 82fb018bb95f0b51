// Command gendocs renders the pages of docs/ that follow from the code.
package main

import (
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"

	"waybill.dev/waybill/protocol/fault"
)

func main() {
	if err := os.WriteFile("docs/errors.md", []byte(errors()), 0o600); err != nil {
		log.Fatal(err)
	}
}

// errors is the table of codes.
func errors() string {
	var b strings.Builder
	b.WriteString("# Errors\n\nGenerated from `protocol/fault/table.go` by `make gen`; do not edit.\n\n" +
		"Every answer that is not 2xx is `{\"error\": code, \"message\": sentence, \"details\"?: object}`. Switch on the code; " +
		"the sentence is for people. A code without an HTTP status stands in the `error` of a run or node only.\n\n" +
		"| code | HTTP | gRPC | retry | meaning |\n|---|---|---|---|---|\n")
	for _, c := range fault.Codes() {
		r := fault.Lookup(c)
		fmt.Fprintf(&b, "| `%s` | %s | %d | %s | %s |\n", c, status(r.HTTP), r.GRPC, yes(r.Retryable), r.Meaning)
	}
	return b.String()
}

func status(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return ""
}
