package obs

import (
	"fmt"
	"runtime"
)

// Panic renders the value of a panic for logs: runtime errors unchanged, and only the type
// of other values, which can contain anything.
func Panic(p any) string {
	if err, ok := p.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("a value of type %T", p)
}
