package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// copiesOf is the variable with process counts other than the default of two, such as
// "dispatcher=4,gateway=1".
const copiesOf = "SPREAD_COPIES"

// copies returns the number of processes per service.
func copies() (map[string]int, error) {
	out := map[string]int{}
	for _, s := range services {
		out[s] = 2
	}
	given := os.Getenv(copiesOf)
	if given == "" {
		return out, nil
	}
	for part := range strings.SplitSeq(given, ",") {
		service, number, _ := strings.Cut(part, "=")
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || !slices.Contains(services, service) {
			return nil, fmt.Errorf("%s: %q: want SERVICE=NUMBER, of %v", copiesOf, part, services)
		}
		out[service] = n
	}
	return out, nil
}
