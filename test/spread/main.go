// Command spread stands in for `waybill dev` in the black-box tests: it takes the same
// arguments, and runs the host as five services in processes of their own, two of each,
// on three NATS servers beside them (SPREAD_COPIES and SPREAD_NATS_NODES say otherwise), behind one address for HTTP and one for gRPC. What holds
// for one shape holds for the other:
//
//	WAYBILL=bin/waybill NATS_SERVER=.bin/nats-server WAYBILL_BIN=.bin/spread go test ./test/conformance
//
// Any other command is the real binary's, but for "with-postgres COMMAND ARGS", which runs a
// command beside a PostgreSQL server that holds the read models of all hosts within. When the
// launcher dies, all that it has started dies.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

func main() {
	log.SetFlags(0)
	waybill := os.Getenv("WAYBILL")
	if waybill == "" && (len(os.Args) < 2 || os.Args[1] != withPostgres) {
		log.Fatal("spread: set WAYBILL to the real binary")
	}
	if len(os.Args) > 2 && os.Args[1] == withPostgres {
		status, err := postgres(os.Args[2:])
		if err != nil {
			log.Fatal("spread: ", err)
		}
		os.Exit(status)
	}
	if len(os.Args) < 2 || os.Args[1] != "dev" {
		os.Exit(passOn(waybill, os.Args[1:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, waybill, os.Getenv("NATS_SERVER"), os.Args[2:])
	if status, ok := errors.AsType[statusError](err); ok {
		os.Exit(int(status))
	}
	if err != nil {
		log.Fatal("spread: ", err)
	}
}

// passOn runs a command of the real binary.
func passOn(waybill string, args []string) int {
	c := exec.Command(waybill, args...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := c.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
