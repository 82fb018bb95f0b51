package render

// Pointer formats a JSON pointer for display.
func Pointer(pointer string) string {
	if pointer == "" {
		return "(root)"
	}
	return pointer
}
