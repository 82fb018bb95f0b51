// Command s3 is an S3 server for tests: the Versity S3 Gateway over a directory.
//
//	s3 ADDR DIR   serve the buckets in DIR, which are its folders
//
// The credential is that of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// connections limits the connections and requests.
const connections = 256

func run() error {
	if len(os.Args) != 3 {
		return errors.New("usage: s3 ADDR DIR")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	// Without attributes of objects in the file system, which not every one has.
	backend, err := posix.New(os.Args[2], meta.NoMeta{}, posix.PosixOpts{ForceNoTmpFile: true})
	if err != nil {
		return err
	}
	return embedgw.RunVersityGW(ctx, backend, &embedgw.Config{
		RootUserAccess: os.Getenv("AWS_ACCESS_KEY_ID"), RootUserSecret: os.Getenv("AWS_SECRET_ACCESS_KEY"),
		Ports: []string{os.Args[1]}, MaxConnections: connections, MaxRequests: connections,
		MultipartMaxParts: 10000, KeepAlive: true, Quiet: true,
	})
}
