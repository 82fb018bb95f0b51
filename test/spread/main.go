// Command spread replaces `waybill dev` in the black-box tests. It has the same arguments, and runs
// the host as five services, two processes each (SPREAD_COPIES), with three NATS servers
// (SPREAD_NATS_NODES), behind one address for HTTP and one for gRPC. The tests must pass with both:
//
//	WAYBILL=bin/waybill NATS_SERVER=.bin/nats-server WAYBILL_BIN=.bin/spread go test ./test/conformance
//
// "with-postgres COMMAND ARGS" runs a command with a PostgreSQL server for the read models of all
// hosts that the command starts. Any other command is passed to the real binary. When the launcher
// dies, its processes die.
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
