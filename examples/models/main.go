// Command models runs five workflows, one for each problem with a model's answer, and prints their
// event logs: substituted, insufficient, truncated, corrected, refused.
//
// The host is a real `waybill dev` process. The vendor is a double of Anthropic's API on this machine
// with scripted answers, so no key and no account are needed.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
)

// options are the flags.
type options struct {
	// bin is the host's binary; empty builds it.
	bin string
	// dir is the folder of examples.
	dir string
}

func main() {
	var o options
	flag.StringVar(&o.bin, "bin", "", "binary of the host; empty builds it")
	flag.StringVar(&o.dir, "examples", "examples", "folder of the examples")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, o, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "models:", err)
		os.Exit(1) //nolint:forbidigo // main ends the process
	}
}

// run runs all cases and prints each when it is over.
func run(ctx context.Context, o options, out io.Writer) error {
	tmp, err := os.MkdirTemp("", "waybill-models")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }() // a temporary directory
	if o.bin, err = binary(ctx, o.bin, tmp); err != nil {
		return err
	}
	s, err := open(ctx, o, tmp)
	if err != nil {
		return err
	}
	defer s.close()
	fmt.Fprintf(out, "A host with two models, %s and %s, both doubles on this machine.\n", houseModel, vendorModel)
	for _, c := range cases {
		p, err := s.play(ctx, c)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		if err := p.print(out); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

// binary returns the path of the host's binary. Without a given one it is built.
func binary(ctx context.Context, given, dir string) (string, error) {
	if given != "" {
		if _, err := os.Stat(given); err != nil {
			return "", fmt.Errorf("-bin %s: %w; build it with `make build`, or omit -bin", given, err)
		}
		return filepath.Abs(given)
	}
	path := filepath.Join(dir, "waybill")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, "waybill.dev/waybill/cmd/waybill") //nolint:gosec // G204: our own directory
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build waybill: %w\n%s", err, out)
	}
	return path, nil
}
