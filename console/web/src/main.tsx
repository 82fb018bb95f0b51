import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Router } from "wouter";
import { queryClient } from "./api/query";
import { consolePath } from "./api/base";
import { listenForKeys } from "./app/keys";
import { Shell } from "./app/Shell";
import { Session } from "./app/Session";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/ui.css";

listenForKeys();
createRoot(document.getElementById("root") as HTMLElement).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <Router base={consolePath}>
        <Session>
          <Shell />
        </Session>
      </Router>
    </QueryClientProvider>
  </StrictMode>,
);
