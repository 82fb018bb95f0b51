package obs

import (
	"fmt"
	"runtime"
)

// Panic is what a log may say of a panic's value: the runtime's own errors as
// they are, and of any other value the type, for it can hold anything.
func Panic(p any) string {
	if err, ok := p.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("a value of type %T", p)
}
