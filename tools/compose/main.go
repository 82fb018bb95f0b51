// Command compose checks Compose files against the Compose specification, with the library of
// docker compose:
//
//	compose ENV-FILE COMPOSE-FILE...
//
// It resolves variables from the file of variables, and fails for one that neither it nor a default
// sets.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: compose ENV-FILE COMPOSE-FILE...")
		os.Exit(2)
	}
	for _, file := range os.Args[2:] {
		if err := check(context.Background(), os.Args[1], file); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", file, err)
			os.Exit(1)
		}
	}
}

func check(ctx context.Context, env, file string) error {
	options, err := cli.NewProjectOptions([]string{file}, cli.WithEnvFiles(env), cli.WithDotEnv)
	if err != nil {
		return err
	}
	project, err := options.LoadProject(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %d services\n", file, len(project.Services))
	return nil
}
