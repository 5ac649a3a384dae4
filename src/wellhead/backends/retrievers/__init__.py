"""Retrievers of other makers, each under the guard: a function, a LangChain or LlamaIndex retriever, a vector store."""
