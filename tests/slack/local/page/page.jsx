// Draws messages, a modal or an App Home as Slack's own client does, with a renderer that nobody here wrote.
// local-slack's own page does not know rich_text, tables and most inputs.
import { createRoot } from "react-dom/client";
import { Message } from "slack-blocks-to-jsx";
import "@fontsource/lato/400.css";
import "@fontsource/lato/400-italic.css";
import "@fontsource/lato/700.css";
import "@fontsource/lato/900.css";
import "slack-blocks-to-jsx/dist/style.css";
import "twemoji-colr-font/twemoji.css";
import "./page.css";

const NOTHING = { users: [], channels: [], user_groups: [] };

// The renderer takes `:00:` in plain text for an emoji, also where `emoji: false` says that it is none.
const HOOKS = { emoji: ({ name }) => `:${name.replace(/^:|:$/g, "")}:` };

function face(name, colour) {
  const letter = name.slice(0, 1);
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="36" height="36"><rect width="36" height="36" fill="${colour}"/>
    <text x="18" y="24" font-family="Inter" font-size="17" font-weight="600" fill="#fff" text-anchor="middle">${letter}</text></svg>`;
  return `data:image/svg+xml,${encodeURIComponent(svg)}`;
}

function Blocks({ blocks, names }) {
  const data = { ...NOTHING, ...names };
  return <Message theme="light" withoutWrapper name="" logo="" blocks={blocks} data={data} hooks={HOOKS} />;
}

// Not the renderer's own frame of a message: it calls every author an app.
function Said({ message, names }) {
  const { name, bot, forOne, at, blocks } = message;
  const time = new Date(at * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  return (
    <article className={forOne ? "for-one" : ""}>
      <img src={face(name, message.colour)} alt="" />
      <div>
        {forOne && <p className="only-you">👁 Only visible to you</p>}
        <p className="by">
          <b>{name}</b> {bot && <span className="app">APP</span>} <time>{time}</time>
        </p>
        <Blocks blocks={blocks} names={names} />
      </div>
    </article>
  );
}

// The renderer shows no initial option of a select, and every text input as if it had many lines.
function asBegun(element) {
  const begun = element.initial_option?.text;
  return begun ? { ...element, placeholder: begun } : element;
}

function Input({ block, names }) {
  const element = asBegun(block.element ?? {});
  const kind = element.multiline ? "lines" : "line";
  return (
    <div className={`input ${kind} ${block.element?.initial_option ? "begun" : ""}`}>
      <Blocks blocks={[{ ...block, element }]} names={names} />
    </div>
  );
}

function Modal({ view, names }) {
  return (
    <div className="behind">
      <section className="modal">
        <header>
          <h1>{view.title.text}</h1>
          <span className="cross">✕</span>
        </header>
        <div className="body">
          {view.blocks.map((block, at) =>
            block.type === "input" ? (
              <Input key={at} block={block} names={names} />
            ) : (
              <Blocks key={at} blocks={[block]} names={names} />
            ),
          )}
        </div>
        <footer>
          {view.close && <button>{view.close.text}</button>}
          {view.submit && <button className="submit">{view.submit.text}</button>}
        </footer>
      </section>
    </div>
  );
}

function Thread({ title, subtitle, messages, names }) {
  return (
    <section className="thread">
      <header>
        <h1>{title}</h1>
        <span>{subtitle}</span>
      </header>
      {messages.map((message, at) => (
        <Said key={at} message={message} names={names} />
      ))}
    </section>
  );
}

function Home({ view, names }) {
  return (
    <section className="home">
      <header>
        <img src={face("Countersign", "#1d4d4f")} alt="" />
        <h1>Countersign</h1>
      </header>
      <nav>
        <b>Home</b>
        <span>Messages</span>
        <span>About</span>
      </nav>
      <div className="body">
        <Blocks blocks={view.blocks} names={names} />
      </div>
    </section>
  );
}

const SCENES = { thread: Thread, modal: Modal, home: Home };
const root = createRoot(document.getElementById("root"));

let shown = 0;

// A new key each time, so that nothing typed or begun stays from the scene before.
window.show = (scene, props) => {
  const Scene = SCENES[scene];
  shown += 1;
  root.render(<Scene key={shown} {...props} />);
};
