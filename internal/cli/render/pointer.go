package render

// Pointer is a JSON pointer for people, for whom the empty one is nothing.
func Pointer(pointer string) string {
	if pointer == "" {
		return "(root)"
	}
	return pointer
}
