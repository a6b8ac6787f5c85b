"""What is measured: the reference store, or a program of the user's behind the retriever protocol."""
