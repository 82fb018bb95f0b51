// Command subscribe prints the run events of a tenant, one JSON document per line. After a restart it
// resumes where it ended. See README.md.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"

	"github.com/nats-io/nats.go"

	"waybill.dev/waybill/client/subscribe"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:forbidigo // main ends the process
	}
}

func run() error {
	tenant := os.Getenv("TENANT")
	opts := []nats.Option{nats.CustomInboxPrefix("_INBOX_" + cmp.Or(os.Getenv("READER"), tenant))}
	if seed := os.Getenv("NATS_NKEY"); seed != "" {
		own, err := nats.NkeyOptionFromSeed(seed)
		if err != nil {
			return err
		}
		opts = append(opts, own)
	} else {
		opts = append(opts, nats.UserInfo(tenant, os.Getenv("NATS_PASSWORD")))
	}
	nc, err := nats.Connect(os.Getenv("NATS_URL"), opts...)
	if err != nil {
		return err
	}
	defer nc.Close()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	s, err := subscribe.Open(ctx, nc, subscribe.Config{Tenant: tenant, Consumer: os.Getenv("CONSUMER")})
	if err != nil {
		return err
	}
	left, _ := strconv.Atoi(os.Getenv("COUNT")) // 0 means no limit
	return s.Run(ctx, func(_ context.Context, e subscribe.Event) error {
		if _, err := fmt.Fprintf(os.Stdout, "%s\n", e.AppendJSON(nil)); err != nil {
			return err
		}
		if left--; left == 0 {
			stop()
		}
		return nil
	})
}
