package main

import (
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"

	"waybill.dev/waybill/protocol/fault"
)

const errorsHead = "# Errors\n\n" +
	"Generated from `protocol/fault` by `make gen`; do not edit.\n\n" +
	"Every answer that is not 2xx is `{\"error\": code, \"message\": sentence, \"details\"?: object}`; over gRPC the same document\n" +
	"is the only detail of the status. Switch on the code; the sentence is for people. A code without an HTTP status stands in\n" +
	"the `error` of a run or node only. \"Retry\" says that the same request may succeed later; wait as long as a\n" +
	"`Retry-After` asks. \"Who\" is the one who can do something about it, by the next step. `waybill explain CODE` says the same.\n\n" +
	"| code | HTTP | gRPC | retry | meaning | who | next step |\n|---|---|---|---|---|---|---|\n"

// errorCodes is the page of all codes.
func errorCodes() string {
	var b strings.Builder
	b.WriteString(errorsHead)
	for _, c := range fault.Codes() {
		r := fault.Lookup(c)
		http, grpc := "", ""
		if r.HTTP != 0 {
			http, grpc = strconv.Itoa(r.HTTP), grpcName(r)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s | %s |\n", c, http, grpc, yes(r.Retryable), r.Meaning, r.Owner, r.Next)
	}
	return b.String()
}

func grpcName(r fault.Row) string { return codes.Code(r.GRPC).String() }

func yes(b bool) string {
	if b {
		return "yes"
	}
	return ""
}

// errorRow is the console's data of a code. http is 0 for a code that occurs only in the error of a
// run or node.
type errorRow struct {
	HTTP    int         `json:"http"`
	GRPC    string      `json:"grpc"`
	Retry   bool        `json:"retry"`
	Meaning string      `json:"meaning"`
	Next    string      `json:"next"`
	Owner   fault.Owner `json:"owner"`
}

// errorTable is the table of the console.
func errorTable() string {
	all := map[fault.Code]errorRow{}
	for _, c := range fault.Codes() {
		r := fault.Lookup(c)
		all[c] = errorRow{r.HTTP, grpcName(r), r.Retryable, r.Meaning, r.Next, r.Owner}
	}
	return document(all)
}
